"""Products of dense matrices."""

from typing import Any

import torch
from torch import Tensor


def aligned(x: Tensor) -> Tensor:
    """x, copied unless it begins at a multiple of 64 bytes, as tensors do: the rounding of products depends on that."""
    return x if x.data_ptr() % 64 == 0 else x.clone()


def dense_matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x W for x [N, in] and a weight [in, out]; on the CPU faster than PyTorch's where the output is narrow."""
    traced = torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    if weight.device.type != "cpu" or traced or x.dim() != 2 or x.dtype != weight.dtype:
        return x @ weight
    out: Tensor = _Matmul.apply(x, weight)  # type: ignore[no-untyped-call]
    return out


class _Matmul(torch.autograd.Function):
    """Products with a transposed weight, which is copied, take half of the time where the output is narrow."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.mm(aligned(x), aligned(weight.mT.contiguous().mT))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad, to_x, to_weight = aligned(grad.contiguous()), None, None
        if ctx.needs_input_grad[0]:
            to_x = torch.mm(grad, aligned(weight.mT))
        if ctx.needs_input_grad[1]:
            to_weight = torch.mm(grad.mT, aligned(x)).mT
        return to_x, to_weight
