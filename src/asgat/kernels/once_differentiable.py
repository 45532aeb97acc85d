"""Gradients that refuse to be differentiated again."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from asgat.errors import AsgatError

Backward = Callable[..., Any]


def once_differentiable(backward: Backward) -> Backward:
    """The backward of an autograd function that autograd cannot see into, such as a kernel.

    Without this, second derivatives would silently lack what passes through it. Gradients taken with
    ``create_graph=True`` raise an error where they are differentiated again. PyTorch's decorator of this name does not
    connect them to the inputs: it stays silent where another path leads to the same input.
    """

    @wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        if not torch.is_grad_enabled():
            return backward(ctx, *grads)
        with torch.no_grad():
            found = backward(ctx, *grads)
        several = found if isinstance(found, tuple) else (found,)
        inputs = *grads, *ctx.saved_tensors
        several = _FirstDerivatives.apply(len(several), *several, *inputs)  # type: ignore[no-untyped-call]
        return several if isinstance(found, tuple) else several[0]

    return wrapped


class _FirstDerivatives(torch.autograd.Function):
    """The first ``count`` tensors; they depend on the others."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise AsgatError(
            "Layers of asgat have first derivatives only, but a gradient taken with create_graph=True was "
            "differentiated again. Approximate second derivatives by differences of first ones, in float64."
        )
