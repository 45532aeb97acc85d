"""Operations on stacked runs: tensors have a leading dimension [R] more than those of a single run.

On the CPU the rounding of a product, a sum or a vectorised function can depend on how much is computed in one call.
There each run is computed as a single run would be, so that its numbers do not depend on the other runs of the stack.
Other devices compute all runs in one call.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def each_run(dim: int, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """A function of inputs of a single run, the first of which has ``dim`` dimensions, or of stacked runs.

    It must itself accept inputs with a leading dimension.
    """
    if inputs[0].dim() == dim or (inputs[0].device.type != "cpu" and inputs[0].size(0) > 1):
        return function(*inputs)
    if inputs[0].size(0) == 1:
        return function(*(value.squeeze(0) for value in inputs)).unsqueeze(0)
    return torch.stack([function(*own) for own in zip(*(value.unbind() for value in inputs), strict=True)])


def aligned(x: Tensor) -> Tensor:
    """x, copied unless it begins at a multiple of 64 bytes, as tensors do: the rounding of products depends on that."""
    return x if x.data_ptr() % 64 == 0 else x.clone()


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x W for a weight [in, out]; for stacked runs [R, in, out] and x [N, in], shared, or [R, N, in]."""
    if weight.dim() == 3 and weight.size(0) == 1:
        return matmul(x.squeeze(0) if x.dim() == 3 else x, weight.squeeze(0)).unsqueeze(0)
    traced = torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    if weight.device.type != "cpu" or (weight.dim() == 2 and (traced or x.dim() != 2 or x.dtype != weight.dtype)):
        return x @ weight
    out: Tensor = _Matmul.apply(x, weight)  # type: ignore[no-untyped-call]
    return out


class _Matmul(torch.autograd.Function):
    """One node for all runs takes half of the time of R nodes, and products with a transposed weight, which is copied,
    half of the time of others where the output is narrow."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _products(x, weight.mT.contiguous().mT)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad, to_x, to_weight = grad.contiguous(), None, None
        if ctx.needs_input_grad[0]:
            to_x = _products(grad, weight.mT)
            to_x = to_x.sum(dim=0) if to_x.dim() > x.dim() else to_x
        if ctx.needs_input_grad[1]:
            to_weight = _products(grad.mT, x).mT
        return to_x, to_weight


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Of every run's matrices; one of the two may be shared by all."""
    if left.dim() == right.dim() == 2:
        return torch.mm(aligned(left), aligned(right))
    runs = max(part.size(0) for part in (left, right) if part.dim() == 3)
    lefts, rights = (part.unbind() if part.dim() == 3 else (part,) * runs for part in (left, right))
    return torch.stack([torch.mm(aligned(a), aligned(b)) for a, b in zip(lefts, rights, strict=True)])
