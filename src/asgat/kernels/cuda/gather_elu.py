"""CUDA kernels of :func:`asgat.kernels.gather_elu`."""

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels.cuda.dropout import chance
from asgat.kernels.cuda.gather_sum import dropout_scale, gather_sum, gather_sum_grad_weight, gather_sum_grad_x

ROWS = 16  # of one bias that a program adds
BLOCK = 256  # features of a program


def gather_elu(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None, p: float, seed: Tensor | None) -> Tensor:
    return gather_sum(x, index, weight, bias, True, p, seed)


def gather_elu_grad(
    grad: Tensor, out: Tensor, x: Tensor, index: Tensor, weight: Tensor, seed: Tensor | None, p: float,
    bias_shape: torch.Size | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Gradients to x, weight and bias."""
    to_sums, to_bias = _to_sums(grad, out, seed, p, bias_shape)
    to_x = gather_sum_grad_x(to_sums, index, weight, x.size(0))
    return to_x, gather_sum_grad_weight(to_sums, x, index), to_bias


def _to_sums(
    grad: Tensor, out: Tensor, seed: Tensor | None, p: float, bias_shape: torch.Size | None
) -> tuple[Tensor, Tensor | None]:
    """Gradients to the sums, and their sums over the rows of each bias."""
    to_sums = torch.empty_like(out)
    biases = 1 if bias_shape is None else bias_shape[0]
    nodes, columns = out.size(0) // max(1, biases), biases * out.size(1)
    blocks = triton.cdiv(nodes, ROWS)
    partial = out.new_empty(blocks, columns)
    if out.numel() == 0:
        return to_sums, None if bias_shape is None else grad.new_zeros(bias_shape)
    drawn = (out, out) if seed is None else (chance(p, out.device), seed)
    with torch.cuda.device(grad.get_device()):
        _unit_kernel[triton.cdiv(columns, BLOCK), blocks](
            grad, out, to_sums, partial, *drawn, nodes, columns,
            DROPS=seed is not None, ROWS=ROWS, BLOCK=BLOCK,
        )  # fmt: skip
    return to_sums, None if bias_shape is None else partial.sum(dim=0).view(bias_shape)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _through_unit(grad: tl.tensor, out: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """The gradient before ELU and dropout, which kept an entry if its scale is not 0."""
    made = tl.where(scale > 0.0, out / scale, 0.0)
    grad = tl.where(scale > 0.0, grad * scale, 0.0)
    return tl.where(made > 0.0, grad, grad * (made + 1.0))


@triton.jit(do_not_specialize=["nodes"])  # type: ignore[untyped-decorator,unused-ignore]
def _unit_kernel(
    grad: tl.tensor, out: tl.tensor, to_sums: tl.tensor, partial: tl.tensor, p: tl.tensor, seed: tl.tensor,
    nodes: tl.tensor, columns: tl.tensor, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program passes a block of nodes and columns back through ELU and dropout, and adds them up."""
    node = tl.program_id(1).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = (node < nodes)[:, None] & (column < columns)[None, :]
    place = node[:, None] * columns + column[None, :]
    held = tl.load(grad + place, mask=within, other=0.0)
    made = tl.load(out + place, mask=within, other=0.0)
    if DROPS:
        scale = dropout_scale(node, column, columns, p, seed).to(held.dtype)
    else:
        scale = tl.full([ROWS, BLOCK], 1.0, dtype=held.dtype)
    held = _through_unit(held, made, scale)
    tl.store(to_sums + place, held, mask=within)
    to = partial + tl.program_id(1) * columns + column
    tl.store(to, tl.sum(held, axis=0), mask=column < columns)
