"""Softmax, dropout and weighted sums of attention, in one kernel."""

from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import is_compiled, kernel
from asgat.kernels.dropout import Probability, draw_seeds, drops
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
    score: Tensor, index: Tensor, x: Tensor, bias: Tensor | None = None, p: Probability = 0.0, training: bool = True
) -> Tensor:
    r"""Every head of every row sums rows of ``x``, weighted by the softmax of its scores, under dropout:

    .. math:: out_{nh} = \sum_j \mathrm{dropout}(\mathrm{softmax}(score_{hn}))_j \, x_{index_{hnj}} + bias_h

    with gradients to ``score``, ``x`` and ``bias``. The mask is that of :func:`asgat.kernels.dropout` of the weights.
    On the CPU only, see :func:`fits_attention_sum`. Every sum has a fixed order, for any number of runs.

    Cost: O(R · H · N · K · F) time forward and backward; O(R · H · N · K) memory in addition to the outputs.

    Args:
        score, index: of K attended rows for each of R runs, H heads and N rows, [R, H, N, K]. Indices are within
            0..M-1; this is not checked.
        x: rows to sum, [R, M, F].
        bias: [R, H, F], or a multiple of H for rows in turn, as for :func:`asgat.kernels.gather_sum`.
        p: probability of dropout, or that of each run.

    Shapes:
        - **output**: [R, N, H, F]
    """
    seeds = draw_seeds(p, x.device) if drops(p, training) else None
    if torch.is_grad_enabled():
        out: Tensor
        out, _ = _AttentionSum.apply(score, index, x, bias, seeds)  # type: ignore[no-untyped-call]
        return out
    out, *_ = _forward(score, index, x, bias, seeds)
    return out


class _AttentionSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, score: Tensor, index: Tensor, x: Tensor, bias: Tensor | None, seeds: Any) -> Any:
        out, weight, kept = _forward(score, index, x, bias, seeds)
        ctx.save_for_backward(index, x, weight, kept)
        ctx.set_materialize_grads(False)
        ctx.bias_shape = None if bias is None else bias.shape
        return out, weight  # the gradient depends on the score through the weight, which autograd knows of an output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 5
        to_score, _, to_x, to_bias, _ = ctx.needs_input_grad
        of_score, of_x = _backward(grad, *ctx.saved_tensors, to_x)
        of_bias = grad_to_bias(grad, ctx.bias_shape) if to_bias else None
        return of_score if to_score else None, None, of_x, of_bias, None


_forward, _backward = kernel("attention_sum", "attention_sum"), kernel("attention_sum", "attention_sum_grad")
