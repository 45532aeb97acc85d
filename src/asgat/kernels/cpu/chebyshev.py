"""CPU kernels of :func:`asgat.kernels.chebyshev_filter`: one run after the other."""

from collections.abc import Iterator

import torch
from torch import Tensor

from asgat.kernels.cpu.csr_matmul import csr_matmul
from asgat.kernels.each_run import aligned


def chebyshev_filter(indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor) -> Tensor:
    out = signal.new_empty(*signal.shape[:2], coefficients.size(1), signal.size(3))
    for c, x, total in zip(coefficients, signal.detach(), out, strict=True):
        factors, terms = c.t().unsqueeze(-1), _terms(indptr, index, value, x, c.size(1) - 1)
        torch.mul(next(terms), factors[0], out=total).add_(0.0)  # not -0
        for factor, term in zip(factors[1:], terms, strict=True):
            total += term * factor  # rounded twice, on every path; a fused addcmul is not
    return out


def chebyshev_filter_grad(
    indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    to_coefficients = torch.empty(coefficients.shape, dtype=coefficients.dtype)
    to_signal = torch.zeros_like(signal, memory_format=torch.contiguous_format)
    for c, x, g, to_c, to_x in zip(coefficients, signal, grad, to_coefficients, to_signal, strict=True):
        shared = x.size(1) < g.size(1)
        of_heads = [aligned(own.reshape(-1)) for own in x.expand_as(g).unbind(1)]
        for i, term in enumerate(_terms(indptr, index, value, g, c.size(1) - 1)):
            each = zip(term.unbind(1), of_heads, strict=True)
            to_c[:, i] = torch.stack([torch.dot(aligned(own.reshape(-1)), other) for own, other in each])
            scaled = term * c[:, i, None]
            to_x += scaled.sum(1, keepdim=True) if shared else scaled
    return to_coefficients, to_signal


def _terms(indptr: Tensor, index: Tensor, value: Tensor, x: Tensor, order: int) -> Iterator[Tensor]:
    """T_0(X) x, … for a signal [N, heads, F]."""
    flat = x.flatten(1)
    before, now = flat, csr_matmul(indptr, index, value, flat)
    yield before.view(x.shape)
    yield now.view(x.shape)
    for _ in range(order - 1):
        before, now = now, csr_matmul(indptr, index, value, now).mul_(2.0).sub_(before)
        yield now.view(x.shape)
