"""Dropout whose mask is computed, not stored."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.backend import kernel
from asgat.kernels.once_differentiable import once_differentiable

Probability = float | tuple[float, ...]  # of one run, or of each of several stacked runs

_dropout_runs = kernel("dropout", "dropout_runs")
_seeds: ContextVar[Callable[[], Tensor] | None] = ContextVar("dropout_seeds", default=None)


@contextmanager
def dropout_seeds(seeds: Callable[[], Tensor]) -> Iterator[None]:
    """Within it, every dropout of stacked runs calls ``seeds`` for the seed of each run, [R], int64, on its device.

    Without it they come from PyTorch's generator, as those of a single run always do.
    """
    token = _seeds.set(seeds)
    try:
        yield
    finally:
        _seeds.reset(token)


def drops(p: Probability, training: bool) -> bool:
    """Whether :func:`dropout` changes anything, and draws a seed."""
    return training and (any(p) if isinstance(p, tuple) else p > 0.0)


def dropout(x: Tensor, p: Probability, training: bool = True) -> Tensor:
    """Entries zeroed with probability p and the others scaled by 1 / (1 - p), as :func:`torch.nn.functional.dropout`.

    On the CPU, where PyTorch draws its masks one number after the other, each entry is decided by a hash of its place
    and of a seed, in parallel, and the gradient computes the mask again instead of storing it. The seed comes from
    PyTorch's generator: ``torch.manual_seed`` repeats a run.

    With one probability per run in a tuple, ``x`` is that of stacked runs, [R, ...], or [1, ...] shared by all of them:
    see :func:`dropout_runs`. Of a stack of one ``x`` is as for a single run. Nothing is drawn where all p are 0.

    Cost: O(entries) time, no memory in addition to the output.
    """
    if not drops(p, training):
        return x
    on_cpu = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    if not isinstance(p, tuple) and (not on_cpu or torch.compiler.is_compiling()):
        return F.dropout(x, p)
    return dropout_runs(x, *draw_seeds(p, x.device))


def draw_seeds(p: Probability, device: torch.device) -> tuple[Tensor, Tensor]:
    """The probabilities [R] and the next seeds [R] of a dropout, on the device; a single run has one of each."""
    seeds = _seeds.get() if isinstance(p, tuple) else None
    each = p if isinstance(p, tuple) else (p,)
    seed = torch.randint(2**62, (len(each),), device=device) if seeds is None else seeds()
    return _on_device(each, device), seed


def dropout_runs(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    """Dropout of stacked runs, with a probability and a seed for each, [R] and [R].

    On every device run r has the mask that :func:`dropout` has on the CPU where it draws ``seed[r]``, whatever the
    other runs are, and nothing waits for the device. ``x`` is [R, ...], or [1, ...] shared by all runs; of a single
    run it has any shape.

    Cost: O(entries) time, no memory in addition to the output.
    """
    out: Tensor = _Dropout.apply(x.contiguous(), p, seed)  # type: ignore[no-untyped-call]
    return out


@cache
def _on_device(p: tuple[float, ...], device: torch.device) -> Tensor:
    """Copied once and never freed: a CUDA graph can neither record a copy from the host nor hold a tensor."""
    return torch.tensor(p, dtype=torch.float64, device=device)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
        ctx.p, ctx.seed = p, seed
        ctx.shared = p.numel() > 1 and x.size(0) == 1
        return _masked(x, p, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        to_x = _masked(grad.contiguous(), ctx.p, ctx.seed)
        return to_x.sum(dim=0, keepdim=True) if ctx.shared else to_x, None, None


def _masked(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    shape = x.shape if p.numel() == 1 else (p.numel(), *x.shape[1:])
    if not x.numel():
        return x.new_empty(shape)
    rows = x.view(1 if p.numel() == 1 else x.size(0), -1)
    out: Tensor = _dropout_runs(rows, p, seed)
    return out.view(shape)
