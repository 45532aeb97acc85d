"""Weighted sums of gathered rows, in one pass."""

from typing import Any

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels.backend import compute_dtype, kernel
from asgat.kernels.operator import Operator


def gather_sum(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Every output row is a weighted sum of a few rows of ``x``:

    .. math:: out_b = \sum_{j} weight_{bj} \, x_{index_{bj}} + bias_{b \bmod H}

    with gradients to ``x``, ``weight`` and ``bias``. Entries of weight 0 cost nothing forward. Computed in float32, or
    in float64 if either input is; half-precision inputs are promoted.

    Cost: O(B · K · F) time forward and in each of the two gradients; O(B · K + M) memory in addition to the outputs
    for the gradient to ``x``. On CPU, and on CUDA under ``torch.use_deterministic_algorithms``, every sum has a fixed
    order; on CUDA the gradient to ``x`` otherwise adds atomically.

    Args:
        x: rows to gather, [M, F].
        index: which rows, [B, K], int64 or int32, within 0..M-1 (checked on CPU; ignored outside of it on CUDA).
        weight: their weights, [B, K].
        bias: added to every H-th row, [H, F]; H divides B.

    Shapes:
        - **output**: [B, F]

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 2.0], [10.0, 20.0]])
        >>> gather_sum(x, torch.tensor([[0, 1], [1, 1]]), torch.tensor([[1.0, 0.5], [1.0, 0.0]]))
        tensor([[ 6., 12.],
                [10., 20.]])
    """
    if x.dim() != 2 or index.dim() != 2 or index.shape != weight.shape:
        raise AsgatError(
            f"gather_sum needs x [M, F] and index and weight of the same shape [B, K], but x is {list(x.shape)}, "
            f"index {list(index.shape)} and weight {list(weight.shape)}."
        )
    if bias is not None and (bias.dim() != 2 or bias.size(1) != x.size(1) or index.size(0) % max(1, bias.size(0))):
        raise AsgatError(f"bias must be [H, {x.size(1)}] with H a divisor of {index.size(0)}, not {list(bias.shape)}.")
    dtype = compute_dtype(x, weight)
    out: Tensor = _gather_sum(x.to(dtype), index, weight.to(dtype), None if bias is None else bias.to(dtype))
    return out


def _setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor | None], output: Tensor) -> None:
    x, index, weight, bias = inputs
    ctx.save_for_backward(x if ctx.needs_input_grad[2] else None, index, weight)
    ctx.size = x.size(0)
    ctx.bias_shape = None if bias is None else bias.shape


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, Tensor | None, Tensor | None]:
    x, index, weight = ctx.saved_tensors
    grad_x = gather_sum_grad_x(grad, index, weight, ctx.size) if ctx.needs_input_grad[0] else None
    grad_weight = gather_sum_grad_weight(grad, x, index) if ctx.needs_input_grad[2] else None
    needs_bias = ctx.bias_shape is not None and ctx.needs_input_grad[3]
    return grad_x, None, grad_weight, grad_to_bias(grad, ctx.bias_shape) if needs_bias else None


def grad_to_bias(grad: Tensor, shape: torch.Size) -> Tensor:
    """The gradient of a bias [H, F] from that of the sums."""
    return grad.reshape(-1, shape.numel()).sum(dim=0).view(shape)


gather_sum_grad_x = Operator(
    "asgat::gather_sum_grad_x",
    "(Tensor grad, Tensor index, Tensor weight, SymInt size) -> Tensor",
    kernel("gather_sum", "gather_sum_grad_x"),
    lambda grad, index, weight, size: grad.new_empty(size, grad.size(1)),
)
gather_sum_grad_weight = Operator(
    "asgat::gather_sum_grad_weight",
    "(Tensor grad, Tensor x, Tensor index) -> Tensor",
    kernel("gather_sum", "gather_sum_grad_weight"),
    lambda grad, x, index: x.new_empty(index.shape),
)
_gather_sum = Operator(
    "asgat::gather_sum",
    "(Tensor x, Tensor index, Tensor weight, Tensor? bias) -> Tensor",
    kernel("gather_sum", "gather_sum"),
    lambda x, index, weight, bias: x.new_empty(index.size(0), x.size(1)),
    _setup_context,
    _backward,
)
