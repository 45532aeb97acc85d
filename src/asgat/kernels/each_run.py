"""Operations on stacked runs, tensors [R, ...] instead of [...].

On the CPU the rounding of a matrix product or a sum can depend on how much is computed in one call. There each run is
computed as a single run would be, so that its numbers do not depend on the other runs of the stack. Other devices
compute all runs in one call.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def each_run(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """The function of every run's part of the inputs, stacked again."""
    if inputs[0].size(0) == 1:  # views only
        return function(*(value.squeeze(0) for value in inputs)).unsqueeze(0)
    parts = zip(*(value.unbind() for value in inputs), strict=True)
    return torch.stack([function(*part) for part in parts])


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x W for a weight [in, out]; for stacked weights [R, in, out], and x [N, in] or [R, N, in], it is [R, N, out]."""
    if weight.dim() == 2 or weight.device.type != "cpu":
        return x @ weight
    if x.dim() == 2:
        return each_run(lambda own: x @ own, weight)
    return each_run(torch.mm, x, weight)


def elu(x: Tensor) -> Tensor:
    """:func:`torch.nn.functional.elu` of [N, F] or, for stacked runs, [R, N, F]."""
    return F.elu(x) if x.dim() == 2 or x.device.type != "cpu" else each_run(F.elu, x)


def scale(x: Tensor, factor: Tensor) -> Tensor:
    """x [heads, N, k] times a factor [heads, 1, 1]; both with a leading dimension [R] for stacked runs."""
    return x * factor if x.dim() == 3 or x.device.type != "cpu" else each_run(torch.mul, x, factor)


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """x [N, F] plus a bias [F]; both with a leading dimension [R] for stacked runs."""
    if x.dim() == 2 or x.device.type != "cpu":
        return x + bias.unsqueeze(-2)
    return each_run(torch.add, x, bias)


def mean_of_heads(x: Tensor) -> Tensor:
    """[heads, N, F] → [N, F], with a leading dimension [R] for stacked runs."""
    return x.mean(dim=-3) if x.dim() == 3 or x.device.type != "cpu" else each_run(lambda own: own.mean(dim=0), x)
