"""A PyTorch operator that costs little to call."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from asgat.kernels.backend import kernel
from asgat.kernels.once_differentiable import once_differentiable


class Operator:
    """A function over tensors with its own gradient, known to PyTorch's compiler under a name.

    While code is compiled, or on a tensor subclass, the call is one opaque registered operator. Otherwise it is an
    autograd function, which costs a third of a registered operator's dispatch: that shows on small graphs.

    Args:
        name: name to register.
        schema: types of arguments and results, such as ``"(Tensor x, SymInt size) -> Tensor"``.
        function: the computation.
        fake: gives empty outputs of the right shape and dtype.
        setup_context, backward: as for :class:`torch.autograd.Function`; without them there is no gradient, and there
            never is a second one.
    """

    def __init__(
        self,
        name: str,
        schema: str,
        function: Callable[..., Any],
        fake: Callable[..., Any],
        setup_context: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
    ) -> None:
        self.registered = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
        self.registered.register_fake(fake)
        self._function = self._eager = function
        if backward is not None:
            backward = once_differentiable(backward)
            self.registered.register_autograd(backward, setup_context=setup_context)

            # With a separate setup_context PyTorch would inspect the signature in every call.
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = function(*inputs)
                if setup_context is not None:
                    setup_context(ctx, inputs, output)
                return output

            members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
            self._eager = type(name.split("::")[1], (torch.autograd.Function,), members).apply  # type: ignore[attr-defined]

    def __call__(self, *arguments: Any) -> Any:
        if torch.compiler.is_compiling() or type(arguments[0]) not in (Tensor, nn.Parameter):
            return self.registered(*arguments)
        return self._eager(*arguments) if torch.is_grad_enabled() else self._function(*arguments)


def elementwise(name: str) -> tuple[Operator, Operator]:
    """A function of one tensor whose output has its shape and gives the gradient; and the operator of that gradient.

    Its kernels are ``name`` and ``name_grad``, which takes the output and the gradient of it.
    """

    def fake(x: Tensor, *_: Tensor) -> Tensor:
        return x.new_empty(x.shape)

    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    def backward(ctx: Any, grad: Tensor) -> Any:
        return gradient(*ctx.saved_tensors, grad)

    schema = "(Tensor out, Tensor grad) -> Tensor"
    gradient = Operator(f"asgat::{name}_grad", schema, kernel(name, f"{name}_grad"), fake)
    schema = "(Tensor x) -> Tensor"
    return Operator(f"asgat::{name}", schema, kernel(name, name), fake, setup_context, backward), gradient
