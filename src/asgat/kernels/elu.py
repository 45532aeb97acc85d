"""The exponential linear unit."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.backend import kernel
from asgat.kernels.operator import Operator


def elu(x: Tensor) -> Tensor:
    """``torch.nn.functional.elu(x)``, several times as fast on the CPU, where every entry is computed alike: the result
    does not depend on how many are computed in one call.

    Cost: O(entries) time forward and backward, no memory in addition to the output.
    """
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return F.elu(x)
    out: Tensor = _elu(x)
    return out


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _backward(ctx: Any, grad: Tensor) -> Tensor:
    (out,) = ctx.saved_tensors
    to_x: Tensor = _elu_grad(out, grad)
    return to_x


def _fake(x: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(x.shape)


_elu_grad = Operator("asgat::elu_grad", "(Tensor out, Tensor grad) -> Tensor", kernel("elu", "elu_grad"), _fake)
_elu = Operator("asgat::elu", "(Tensor x) -> Tensor", kernel("elu", "elu"), _fake, _setup_context, _backward)
