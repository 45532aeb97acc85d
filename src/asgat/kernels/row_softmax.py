"""Softmax over short rows."""

from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import kernel
from asgat.kernels.operator import Operator


def row_softmax(score: Tensor) -> Tensor:
    """``torch.softmax(score, dim=-1)``, fast on the CPU for rows of a few entries, where PyTorch's is not.

    Cost: O(entries) time forward and backward, no memory in addition to the output.
    """
    if score.device.type != "cpu" or score.dtype not in (torch.float32, torch.float64):
        return torch.softmax(score, dim=-1)
    out: Tensor = _row_softmax(score)
    return out


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _backward(ctx: Any, grad: Tensor) -> Tensor:
    (weight,) = ctx.saved_tensors
    to_score: Tensor = _row_softmax_grad(weight, grad)
    return to_score


def _fake(score: Tensor, *_: Tensor) -> Tensor:
    return score.new_empty(score.shape)


_row_softmax_grad = Operator(
    "asgat::row_softmax_grad",
    "(Tensor weight, Tensor grad) -> Tensor",
    kernel("row_softmax", "row_softmax_grad"),
    _fake,
)
_row_softmax = Operator(
    "asgat::row_softmax",
    "(Tensor score) -> Tensor",
    kernel("row_softmax", "row_softmax"),
    _fake,
    _setup_context,
    _backward,
)
