"""The same operators in plain PyTorch, for devices without compiled kernels: slower, with more memory."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

AT_ONCE = 1 << 24  # scores computed at a time


def gather_sum(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = x.new_zeros(index.size(0), x.size(1))
    if bias is not None:
        out.view(-1, *bias.shape).add_(bias)
    for j in range(index.size(1)):
        out.addcmul_(x.index_select(0, index[:, j]), weight[:, j, None])
    return out


def gather_sum_grad_x(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    out = grad.new_zeros(size, grad.size(1))
    for j in range(index.size(1)):
        out.index_add_(0, index[:, j], grad * weight[:, j, None])
    return out


def gather_sum_grad_weight(grad: Tensor, x: Tensor, index: Tensor) -> Tensor:
    out = x.new_empty(index.shape)
    for j in range(index.size(1)):
        out[:, j] = (grad * x.index_select(0, index[:, j])).sum(dim=1)
    return out


def csr_matmul(indptr: Tensor, index: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    rows = indptr.numel() - 1
    row = torch.repeat_interleave(torch.arange(rows, device=dense.device), indptr.diff(), output_size=index.numel())
    out = dense.new_zeros(rows, dense.size(1))
    return out.index_add_(0, row, dense.index_select(0, index) * value.unsqueeze(1))


def chebyshev_filter(
    indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor, boundary: Any = None
) -> Tensor:
    terms = _chebyshev_terms(indptr, index, value, signal, coefficients.size(1) - 1, boundary)
    return torch.einsum("hi,inhf->nhf", coefficients, terms.expand(-1, -1, coefficients.size(0), -1))


def chebyshev_filter_grad(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    coefficients: Tensor,
    signal: Tensor,
    grad: Tensor,
    boundary: Any = None,
) -> tuple[Tensor, Tensor]:
    terms = _chebyshev_terms(indptr, index, value, grad, coefficients.size(1) - 1, boundary)
    to_coefficients = torch.einsum("inhf,nhf->hi", terms, signal.expand_as(grad))
    to_signal = torch.einsum("hi,inhf->nhf", coefficients, terms)
    return to_coefficients.contiguous(), to_signal.sum_to_size(signal.shape)


def _chebyshev_terms(
    indptr: Tensor, index: Tensor, value: Tensor, signal: Tensor, order: int, boundary: Any = None
) -> Tensor:
    """T_0(X) x, … for signals [N, heads, F], [order + 1, N, heads, F]."""

    def product(term: Tensor) -> Tensor:
        if boundary is not None:
            own, term = term, term.new_empty(term.size(0) + boundary.num_needed, term.size(1))
            term[: own.size(0)] = own
            boundary.fill(term)
        return csr_matmul(indptr, index, value, term)

    flat = signal.flatten(1)
    terms = [flat, product(flat)]
    for _ in range(order - 1):
        terms.append(2.0 * product(terms[-1]) - terms[-2])
    return torch.stack(terms).view(-1, *signal.shape)


def select_top(
    value: Tensor, indptr: Tensor, order: Tensor, widths: Sequence[int], counts: Sequence[int], coefficients: Tensor,
    k: int, hint: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    shape = coefficients.size(0), indptr.numel() - 1, k
    score = coefficients.new_full(shape, -torch.inf)
    position = hint.new_full(shape, -1)
    done = 0
    for width, count in zip(widths, counts, strict=True):
        select_rows(value, indptr, order[done : done + count], width, coefficients, score, position)
        done += count
    return score, position


def select_rows(
    value: Tensor, indptr: Tensor, rows: Tensor, width: int, coefficients: Tensor, score: Tensor, position: Tensor
) -> None:
    """Fill in the results of the given rows, none longer than ``width``."""
    if value.size(0) == 0:
        return
    k = min(width, score.size(2))
    for part in torch.split(rows, max(1, AT_ONCE // (width * max(coefficients.shape)))):
        entry = indptr[part, None] + torch.arange(width, device=value.device)
        held = value[entry.clamp_max(value.size(0) - 1)].to(coefficients.dtype)
        scores = coefficients.new_zeros(coefficients.size(0), *entry.shape)
        for p in range(coefficients.size(1)):  # a matrix product would run in half precision under autocast
            scores.addcmul_(held[..., p], coefficients[:, p, None, None])
        valid = (entry < indptr[part + 1, None]) & ~scores.isnan()
        best, at = scores.where(valid, -torch.inf).sort(dim=2, descending=True, stable=True)
        best, at = best[..., :k], at[..., :k]
        score[:, part, :k] = best
        position[:, part, :k] = (at + indptr[part, None]).where(best > -torch.inf, -1)


def nodes_at(nodes: Tensor, position: Tensor) -> Tensor:
    return nodes[position]


def select_top_grad(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    heads = position.size(0)
    if value.size(0) == 0 or position.numel() == 0:
        return grad.new_zeros(heads, value.size(1))
    kept = grad.where(position >= 0, 0).reshape(heads, -1, 1)
    held = value[position.clamp_min(0).reshape(heads, -1)].to(grad.dtype)
    return (held * kept).sum(dim=1)


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """The mask of the compiled kernels, computed in 64-bit whole numbers."""
    place = torch.arange(x.numel(), device=x.device)
    word = _mix((_mix((place & 0xFFFFFFFF) ^ (seed & 0xFFFFFFFF)) + (seed >> 32) + (place >> 32)) & 0xFFFFFFFF)
    return (x * (1.0 / (1.0 - p))).where(word >= int(min(p * 2.0**32, 2.0**32 - 1)), 0)


def _mix(word: Tensor) -> Tensor:
    word = word ^ (word >> 16)
    word = (word * 0x7FEB352D) & 0xFFFFFFFF
    word = word ^ (word >> 15)
    word = (word * 0x846CA68B) & 0xFFFFFFFF
    return word ^ (word >> 16)


def row_softmax(score: Tensor) -> Tensor:
    return torch.softmax(score, dim=-1)


def row_softmax_grad(weight: Tensor, grad: Tensor) -> Tensor:
    return weight * (grad - (weight * grad).sum(dim=-1, keepdim=True))


def elu(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x)


def elu_grad(out: Tensor, grad: Tensor) -> Tensor:
    return torch.where(out <= 0, grad * (out + 1), grad)
