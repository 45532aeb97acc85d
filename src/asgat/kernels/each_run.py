"""Operations on stacked runs: tensors have a leading dimension [R] more than those of a single run.

On the CPU the rounding of a product, a sum or a vectorised function can depend on how much is computed in one call.
There each run is computed as a single run would be, so that its numbers do not depend on the other runs of the stack.
Other devices compute all runs in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def each_run(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """The function of every run's part of the inputs, stacked again."""
    parts = zip(*(value.unbind() for value in inputs), strict=True)
    return torch.stack([function(*part) for part in parts])


def aligned(x: Tensor) -> Tensor:
    """x, copied if it does not begin where PyTorch lets its tensors begin: the rounding of products depends on that."""
    return x if x.data_ptr() % 64 == 0 else x.clone()


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x W for a weight [in, out]; for stacked runs [R, in, out] and x [N, in], shared, or [R, N, in]."""
    if weight.dim() == 2 or weight.device.type != "cpu":
        return x @ weight
    out: Tensor = _Matmul.apply(x, weight)  # type: ignore[no-untyped-call]
    return out


def elu(x: Tensor) -> Tensor:
    """:func:`torch.nn.functional.elu` of [N, F]."""
    if x.dim() == 2 or x.device.type != "cpu":
        return F.elu(x)
    out: Tensor = _Elu.apply(x)  # type: ignore[no-untyped-call]
    return out


def scale_heads(x: Tensor, factor: Tensor) -> Tensor:
    """x [heads, N, k] times a factor [heads]."""
    factor = factor[..., None, None]
    return x * factor if x.dim() == 3 or x.device.type != "cpu" else each_run(torch.mul, x, factor)


def mean_of_heads(x: Tensor) -> Tensor:
    """[heads, N, F] → [N, F]."""
    return x.mean(dim=-3) if x.dim() == 3 or x.device.type != "cpu" else each_run(lambda own: own.mean(dim=0), x)


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """x [N, F] plus a bias [F]."""
    return x + bias.unsqueeze(-2) if x.dim() == 2 or x.device.type != "cpu" else each_run(torch.add, x, bias)


# As functions of all runs, whose loops are within: that takes half of the time of R nodes in autograd's graph.


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _products(x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad = grad.contiguous()
        to_x = _products(grad, weight.mT) if ctx.needs_input_grad[0] else None
        to_weight = None
        if ctx.needs_input_grad[1]:  # by the product that autograd takes for a single run
            columns = weight.stride(-2) == 1 and weight.stride(-1) == weight.size(-2)
            to_weight = _products(grad.mT, x).mT if columns else _products(x.mT, grad)
        return to_x if to_x is None or x.dim() == 3 else to_x.sum(dim=0), to_weight


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Of every run's matrices; one of the two may be shared by all."""
    runs = max(left.size(0) if left.dim() == 3 else 0, right.size(0) if right.dim() == 3 else 0)
    lefts, rights = (part.unbind() if part.dim() == 3 else (part,) * runs for part in (left, right))
    return torch.stack([torch.mm(aligned(a), aligned(b)) for a, b in zip(lefts, rights, strict=True)])


class _Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        for own, to in zip(x, out, strict=True):
            torch.ops.aten.elu.out(own, out=to)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        grad, to_x = grad.contiguous(), torch.empty_like(x)
        for own, back, to in zip(x, grad, to_x, strict=True):
            torch.ops.aten.elu_backward.grad_input(back, 1.0, 1.0, 1.0, False, own, grad_input=to)
        return to_x
