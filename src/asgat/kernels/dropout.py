"""Dropout whose mask is computed, not stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.backend import kernels

Probability = float | tuple[float, ...]  # of one run, or of each of several stacked runs

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
    PyTorch's generator: ``torch.manual_seed`` repeats a run, with any number of threads.

    With one probability per run in a tuple, ``x`` is that of stacked runs, [R, ...], or [1, ...] shared by all of them:
    see :func:`dropout_runs`. Of a stack of one ``x`` is as for a single run. Nothing is drawn where all p are 0.

    Cost: O(entries) time, no memory in addition to the output.
    """
    if not drops(p, training):
        return x
    if isinstance(p, tuple):
        seeds = _seeds.get()
        seed = torch.randint(2**62, (len(p),), device=x.device) if seeds is None else seeds()
        if len(p) == 1 and x.device.type == "cpu":
            return _drop(x, p[0], int(seed))
        held = dropout_runs(x.unsqueeze(0) if len(p) == 1 else x, _on_device(p, x.device), seed)
        return held.squeeze(0) if len(p) == 1 else held
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64) or torch.compiler.is_compiling():
        return F.dropout(x, p)
    return _drop(x, p, int(torch.randint(2**62, ())))


def dropout_runs(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    """Dropout of stacked runs, with a probability and a seed for each, [R] and [R].

    On every device run r has the mask that :func:`dropout` has on the CPU where it draws ``seed[r]``, whatever the
    other runs are, and nothing waits for the device. ``x`` is [R, ...], or [1, ...] shared by all runs.

    Cost: O(entries) time, no memory in addition to the output.
    """
    out: Tensor = _DropoutRuns.apply(x.contiguous(), p, seed)  # type: ignore[no-untyped-call]
    return out


@lru_cache(maxsize=64)
def _on_device(p: tuple[float, ...], device: torch.device) -> Tensor:
    """Copied once: a CUDA graph cannot record a copy from the host."""
    return torch.tensor(p, dtype=torch.float64, device=device)


def _drop(x: Tensor, p: float, seed: int) -> Tensor:
    out: Tensor = _Dropout.apply(x, p, seed)  # type: ignore[no-untyped-call]
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, seed: int) -> Tensor:
        ctx.p, ctx.seed = p, seed
        out: Tensor = kernels("dropout", x).dropout(x, p, seed)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return kernels("dropout", grad).dropout(grad, ctx.p, ctx.seed), None, None


class _DropoutRuns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
        ctx.save_for_backward(p, seed)
        ctx.shared = x.size(0) != p.numel()
        out: Tensor = kernels("dropout", x).dropout_runs(x, p, seed)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        p, seed = ctx.saved_tensors
        to_x: Tensor = kernels("dropout", grad).dropout_runs(grad.contiguous(), p, seed)
        return to_x.sum(dim=0, keepdim=True) if ctx.shared else to_x, None, None
