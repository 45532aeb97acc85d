"""Dropout whose mask is computed, not stored."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.backend import kernel
from asgat.kernels.once_differentiable import once_differentiable


def drops(p: float, training: bool) -> bool:
    """Whether :func:`dropout` changes anything, and draws a seed."""
    return training and p > 0.0


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Entries zeroed with probability p and the others scaled by 1 / (1 - p), as :func:`torch.nn.functional.dropout`.

    Each entry is decided by a hash of its place and of a seed, in parallel, and the gradient computes the mask again
    instead of storing it. The seed comes from PyTorch's generator: ``torch.manual_seed`` repeats a run.

    Cost: O(entries) time, no memory in addition to the output.
    """
    if not drops(p, training):
        return x
    hashed = x.device.type in ("cpu", "cuda") and x.dtype in (torch.float32, torch.float64)
    if not hashed or torch.compiler.is_compiling():
        return F.dropout(x, p)
    return seeded_dropout(x, p, draw_seed(x.device))


def draw_seed(device: torch.device) -> Tensor:
    """The seed of a dropout, [1], on the device, which draws it without waiting."""
    return torch.randint(2**62, (1,), device=device)


def seeded_dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Dropout with a given seed [1], whose mask is the same on every device; nothing waits for the device.

    Cost: O(entries) time, no memory in addition to the output.
    """
    out: Tensor = _Dropout.apply(x.contiguous(), p, seed)  # type: ignore[no-untyped-call]
    return out


_dropout = kernel("dropout", "dropout")


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, seed: Tensor) -> Tensor:
        ctx.p, ctx.seed = p, seed
        return _masked(x, p, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _masked(grad.contiguous(), ctx.p, ctx.seed), None, None


def _masked(x: Tensor, p: float, seed: Tensor) -> Tensor:
    if not x.numel():
        return x.new_empty(x.shape)
    out: Tensor = _dropout(x.view(-1), p, seed)
    return out.view(x.shape)
