"""Softmax, dropout and weighted sums of attention, in one kernel."""

from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import is_compiled, kernel
from asgat.kernels.dropout import draw_seed, drops
from asgat.kernels.gather_sum import grad_to_bias
from asgat.kernels.once_differentiable import once_differentiable


def fits_attention_sum(score: Tensor, x: Tensor) -> bool:
    """Whether :func:`attention_sum` serves these tensors: on the CPU, of one precision, and where nothing is traced."""
    return (
        not torch.compiler.is_compiling()
        and score.device.type == "cpu"
        and score.dtype == x.dtype
        and score.dtype in (torch.float32, torch.float64)
        and score.numel() > 0
        and x.numel() > 0
        and is_compiled(score.device)
        and type(x) is Tensor
    )


def attention_sum(
    score: Tensor, index: Tensor, x: Tensor, bias: Tensor | None = None, p: float = 0.0, training: bool = True
) -> Tensor:
    r"""Every head of every row sums rows of ``x``, weighted by the softmax of its scores, under dropout:

    .. math:: out_{nh} = \sum_j \mathrm{dropout}(\mathrm{softmax}(score_{hn}))_j \, x_{index_{hnj}} + bias_h

    with gradients to ``score``, ``x`` and ``bias``. The mask is that of :func:`asgat.kernels.dropout` of the weights.
    On the CPU only, see :func:`fits_attention_sum`. Every sum has a fixed order.

    Cost: O(H · N · K · F) time forward and backward; O(H · N · K) memory in addition to the outputs.

    Args:
        score, index: of K attended rows for each of H heads and N rows, [H, N, K]. Indices are within 0..M-1; this
            is not checked.
        x: rows to sum, [M, F].
        bias: [H, F], or a multiple of H for rows in turn, as for :func:`asgat.kernels.gather_sum`.
        p: probability of dropout.

    Shapes:
        - **output**: [N, H, F]
    """
    seed = draw_seed(x.device) if drops(p, training) else None
    if torch.is_grad_enabled():
        out: Tensor
        out, _ = _AttentionSum.apply(score, index, x, bias, p, seed)  # type: ignore[no-untyped-call]
        return out
    out, *_ = _forward(score, index, x, bias, p, seed)
    return out


class _AttentionSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, score: Tensor, index: Tensor, x: Tensor, bias: Tensor | None, p: float, seed: Tensor | None
    ) -> Any:
        out, weight, kept = _forward(score, index, x, bias, p, seed)
        ctx.save_for_backward(index, x, weight, kept)
        ctx.set_materialize_grads(False)
        ctx.bias_shape = None if bias is None else bias.shape
        return out, weight  # the gradient depends on the score through the weight, which autograd knows of an output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 6
        to_score, _, to_x, to_bias, *_ = ctx.needs_input_grad
        of_score, of_x = _backward(grad, *ctx.saved_tensors, to_x)
        of_bias = grad_to_bias(grad, ctx.bias_shape) if to_bias else None
        return of_score if to_score else None, None, of_x, of_bias, None, None


_forward, _backward = kernel("attention_sum", "attention_sum"), kernel("attention_sum", "attention_sum_grad")
