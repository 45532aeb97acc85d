"""Softmax over short rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import kernels
from asgat.kernels.operator import Operator


def row_softmax(score: Tensor) -> Tensor:
    """``torch.softmax(score, dim=-1)``, made for rows of a few entries: PyTorch's on the CPU is made for long ones.

    Cost: O(entries) time forward and backward, no memory beside the output.
    """
    if score.device.type != "cpu" or score.dtype not in (torch.float32, torch.float64):
        return torch.softmax(score, dim=-1)
    out: Tensor = _row_softmax(score)
    return out


def _forward(score: Tensor) -> Tensor:
    out: Tensor = kernels("row_softmax", score).row_softmax(score)
    return out


def _to_score(weight: Tensor, grad: Tensor) -> Tensor:
    out: Tensor = kernels("row_softmax", weight).row_softmax_grad(weight, grad)
    return out


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _backward(ctx: Any, grad: Tensor) -> Tensor:
    (weight,) = ctx.saved_tensors
    to_score: Tensor = _row_softmax_grad(weight, grad)
    return to_score


def _fake(score: Tensor, *_: Tensor) -> Tensor:
    return score.new_empty(score.shape)


_row_softmax_grad = Operator("asgat::row_softmax_grad", _to_score, _fake)
_row_softmax = Operator("asgat::row_softmax", _forward, _fake, _setup_context, _backward)
