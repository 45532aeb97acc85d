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
