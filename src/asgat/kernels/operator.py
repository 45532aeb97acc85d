"""A PyTorch operator that costs little to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Operator:
    """A function over tensors with a gradient of its own, known to PyTorch's compiler under a name.

    Called while something is compiled, or with a tensor that only stands for one, it is one opaque operator. Called as
    usual it is an autograd function, which costs a third of a registered operator's dispatch: an epoch on a small graph
    consists of that.

    Args:
        name: what it is registered as.
        function: the computation; annotated, as its schema is read off it.
        fake: gives outputs of the right shape and dtype, empty.
        setup_context, backward: as for :class:`torch.autograd.Function`; without them it has no gradient.

    Attributes:
        registered: the registered operator.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        fake: Callable[..., Any],
        setup_context: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
    ) -> None:
        self.registered = torch.library.custom_op(name, function, mutates_args=())
        self.registered.register_fake(fake)
        self._function = self._eager = function
        if backward is not None:
            self.registered.register_autograd(backward, setup_context=setup_context)

            # In one piece: a function whose context is set up apart has its signature looked up in every call.
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = function(*inputs)
                if setup_context is not None:
                    setup_context(ctx, inputs, output)
                return output

            members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
            self._eager = type(name.split("::")[1], (torch.autograd.Function,), members).apply  # type: ignore[attr-defined]

    def __call__(self, *arguments: Any) -> Any:
        traced = torch.compiler.is_compiling() or type(arguments[0]) not in (Tensor, nn.Parameter)
        if traced:
            return self.registered(*arguments)
        return self._eager(*arguments) if torch.is_grad_enabled() else self._function(*arguments)
