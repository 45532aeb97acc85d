"""A linear map of gathered rows, a block of rows at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from asgat.kernels.dense_matmul import aligned
from asgat.kernels.gather_sum import gather_sum, gather_sum_grad_weight, gather_sum_grad_x
from asgat.kernels.once_differentiable import once_differentiable
from asgat.memory import return_freed_memory

ROWS = 1 << 11  # of a block, which stays in a processor's cache


def gather_linear(
    x: Tensor, index: Tensor, weight: Tensor, first: Tensor, others: Sequence[Tensor], matrix: Tensor, bias: Tensor
) -> Tensor:
    r"""A linear map of rows that are joined from stored parts and from sums over gathered rows:

    .. math:: out_v = \Big[ first_v, \; \Vert_h \sum_j weight_{vhj} \, x_{index_{vhj}}, \; others_v \Big] \, W + b

    with gradients to all but ``index``. The sums and the joined rows, H and more times as large as the output, are
    never stored: the gradient computes them again.

    Cost: O(N · (H · K · F + in · out)) time; in addition to the output and to the gradients of the inputs, a block of
    memory forward, and O(N · F) backward, where one h follows the other.

    Args:
        x: rows to gather, [M, F].
        index, weight: which rows and their weights, [N, H, K].
        first, others: parts of the joined rows, [N, …], before and after the sums.
        matrix: the map W, [in, out].
        bias: [out].

    Shapes:
        - **output**: [N, out]
    """
    out: Tensor = _GatherLinear.apply(x, index, weight, matrix, bias, first, *others)  # type: ignore[no-untyped-call]
    return out


class _GatherLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, weight: Tensor, matrix: Tensor, bias: Tensor, *parts: Tensor
    ) -> Tensor:
        return_freed_memory()  # the inputs of layers add up; this and its gradient add most to them
        ctx.save_for_backward(x, index, weight, matrix, *parts)
        out, transposed = x.new_empty(index.size(0), matrix.size(1)), matrix.mT.contiguous().mT  # see dense_matmul
        for rows in _blocks(index):
            torch.mm(_joined(rows, x, index, weight, parts), transposed, out=out[rows]).add_(bias)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return_freed_memory()
        x, index, weight, matrix, *parts = ctx.saved_tensors
        grad, to_matrix, width = aligned(grad.contiguous()), torch.zeros_like(matrix), x.size(1)
        to_parts = [torch.empty_like(part) for part in parts]
        before, sums, *after = matrix.split([parts[0].size(1), index.size(1) * width, *(p.size(1) for p in parts[1:])])
        for rows in _blocks(index):
            to_matrix += torch.mm(_joined(rows, x, index, weight, parts).mT, grad[rows])
            for target, own in zip(to_parts, (before, *after), strict=True):
                torch.mm(grad[rows], own.mT, out=target[rows])
        to_weight = torch.empty_like(weight) if ctx.needs_input_grad[2] else None
        to_x, to_sums = torch.zeros_like(x), x.new_empty(index.size(0), width)
        for head, own in enumerate(sums.split(width)):
            of_head, shares = index[:, head].contiguous(), weight[:, head].contiguous()
            for rows in _blocks(index):
                torch.mm(grad[rows], own.mT, out=to_sums[rows])
                if to_weight is not None:
                    to_weight[rows, head] = gather_sum_grad_weight(to_sums[rows], x, of_head[rows])
            to_x += gather_sum_grad_x(to_sums, of_head, shares, x.size(0))
        return to_x, None, to_weight, to_matrix, grad.sum(dim=0), *to_parts


def _blocks(index: Tensor) -> Iterator[slice]:
    return (slice(start, start + ROWS) for start in range(0, index.size(0), ROWS))


def _joined(rows: slice, x: Tensor, index: Tensor, weight: Tensor, parts: Sequence[Tensor]) -> Tensor:
    sums = gather_sum(x, index[rows].flatten(0, 1), weight[rows].flatten(0, 1)).view(-1, index.size(1) * x.size(1))
    first, *others = (part[rows] for part in parts)
    return torch.cat([first, sums, *others], dim=1)
