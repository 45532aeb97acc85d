"""Dropout whose mask is computed, not kept."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.backend import kernels


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Entries zeroed with probability p and the others scaled by 1 / (1 - p), as :func:`torch.nn.functional.dropout`.

    On the CPU, where PyTorch draws its masks one number after the other, each entry is decided by a hash of its place
    and of a seed, in parallel, and the gradient computes the mask again instead of keeping it. The seed comes from
    PyTorch's generator: ``torch.manual_seed`` repeats a run, with any number of threads.

    Cost: O(entries) time, no memory beside the output.
    """
    if p == 0.0 or not training:
        return x
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64) or torch.compiler.is_compiling():
        return F.dropout(x, p)
    seed = int(torch.randint(2**62, ()))
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


def dropout_runs(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    """Dropout of several runs at once, each with a probability and a seed of its own, [runs] and [runs].

    On every device run r has the mask that :func:`dropout` has on the CPU where it draws ``seed[r]``, whatever the
    other runs are, and nothing waits for the device. ``x`` is [runs, ...], or [1, ...] for all of them.

    Cost: O(entries) time, no memory beside the output.
    """
    out: Tensor = _DropoutRuns.apply(x.contiguous(), p, seed)  # type: ignore[no-untyped-call]
    return out


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


def dropout_seeds(seeds):  # type: ignore
    raise NotImplementedError
