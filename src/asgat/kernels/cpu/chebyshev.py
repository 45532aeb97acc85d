"""CPU kernels of :func:`asgat.kernels.chebyshev_filter`: a block of rows at a time.

The rows of a block stay in a processor's cache while they are used. A block has as many rows whatever their width, so
that sums over nodes do not depend on the number of heads.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from asgat.kernels.cpu.csr_matmul import csr_matmul
from asgat.kernels.dense_matmul import aligned

ROWS = 1 << 12  # of a block


def chebyshev_filter(
    indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor, boundary: Any = None
) -> Tensor:
    out = signal.new_empty(signal.size(0), coefficients.size(0), signal.size(2))
    factors, totals = coefficients.t().unsqueeze(-1).unbind(), torch.split(out, ROWS)
    for i, block, term in _terms(indptr, index, value, signal.detach(), coefficients.size(1) - 1, boundary):
        if i == 0:
            torch.mul(term, factors[0], out=totals[block]).add_(0.0)  # not -0
        else:
            totals[block].add_(term * factors[i])  # rounded twice, on every path; a fused addcmul is not
    return out


def chebyshev_filter_grad(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    coefficients: Tensor,
    signal: Tensor,
    grad: Tensor,
    boundary: Any = None,
) -> tuple[Tensor, Tensor]:
    to_coefficients = torch.zeros(coefficients.shape, dtype=coefficients.dtype)
    to_signal = torch.zeros_like(signal, memory_format=torch.contiguous_format)
    shared, factors = signal.size(1) < grad.size(1), coefficients.t().unsqueeze(-1).unbind()
    totals, heads = torch.split(to_signal, ROWS), grad.size(1)
    others = [[_flat(own) for own in rows.expand(-1, heads, -1).unbind(1)] for rows in torch.split(signal, ROWS)]
    for i, block, term in _terms(indptr, index, value, grad, coefficients.size(1) - 1, boundary):
        each = zip(term.unbind(1), others[block], strict=True)
        to_coefficients[:, i] += torch.stack([torch.dot(_flat(own), other) for own, other in each])
        scaled = term * factors[i]
        totals[block].add_(scaled.sum(1, keepdim=True) if shared else scaled)
    return to_coefficients, to_signal


def _flat(x: Tensor) -> Tensor:
    return aligned(x.reshape(-1))


def _terms(
    indptr: Tensor, index: Tensor, value: Tensor, x: Tensor, order: int, boundary: Any
) -> Iterator[tuple[int, int, Tensor]]:
    """Orders i, blocks and their rows of T_i(X) x for a signal [N, heads, F]; valid until the next is yielded."""
    blocks = []
    for start in range(0, x.size(0), ROWS):
        bounds = indptr[start : start + ROWS + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        blocks.append((bounds - first, index[first:last], value[first:last]))
    now = x.new_empty(x.size(0) + (boundary.num_needed if boundary else 0), *x.shape[1:])
    now[: x.size(0)] = x
    held = [(part.flatten(1), torch.split(part[: x.size(0)], ROWS)) for part in (now, torch.empty_like(now))]
    for block, rows in enumerate(held[0][1]):
        yield 0, block, rows
    for i in range(1, order + 1):
        (source, _), (_, target) = held
        if boundary:
            boundary.fill(source)
        for block, matrix in enumerate(blocks):  # rows of T_i replace those of T_(i - 2)
            product, rows = csr_matmul(*matrix, source), target[block]
            if i == 1:
                rows.copy_(product.view(rows.shape))
            else:
                torch.sub(product.mul_(2.0).view(rows.shape), rows, out=rows)
            yield i, block, rows
        held.reverse()
