"""Weighted sums of gathered rows with the activation and the dropout that follow, in one pass."""

from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import is_compiled, kernel
from asgat.kernels.dropout import seeded_dropout
from asgat.kernels.elu import elu
from asgat.kernels.gather_sum import gather_sum
from asgat.kernels.once_differentiable import once_differentiable


def gather_elu(
    x: Tensor,
    index: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    p: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    """``elu(gather_sum(x, index, weight, bias))``, under dropout if there is a seed.

    On CUDA that is one kernel forward, so that the sums are neither stored nor read again.

    Args:
        x, index, weight, bias: as for :func:`~asgat.kernels.gather_sum`.
        p, seed: probability and seed of the dropout, as for ``seeded_dropout``.

    Shapes:
        - **output**: [B, F]
    """
    single = x.dtype == weight.dtype == torch.float32 and (bias is None or bias.dtype == torch.float32)
    if single and x.is_cuda and is_compiled(x.device) and not torch.compiler.is_compiling():
        out: Tensor = _GatherElu.apply(x, index, weight, bias, p, seed)  # type: ignore[no-untyped-call]
        return out
    out = elu(gather_sum(x, index, weight, bias))
    return out if seed is None else seeded_dropout(out, p, seed)


_forward = kernel("gather_elu", "gather_elu")
_backward = kernel("gather_elu", "gather_elu_grad")


class _GatherElu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None, p: float, seed: Tensor | None
    ) -> Tensor:
        x, index, weight = x.contiguous(), index.contiguous(), weight.contiguous()
        out: Tensor = _forward(x, index, weight, bias, p, seed)
        ctx.save_for_backward(out, x, index, weight, seed)
        ctx.p, ctx.bias_shape = p, None if bias is None else bias.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        to_x, to_weight, to_bias = _backward(grad.contiguous(), *ctx.saved_tensors, ctx.p, ctx.bias_shape)
        return to_x, None, to_weight, to_bias, None, None
