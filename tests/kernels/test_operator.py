"""An operator is the same computation called as usual, compiled, and traced."""

from typing import Any

import pytest
import torch
from tests.kernels.devices import opcheck
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels.operator import Operator

calls: list[str] = []


def _cube(x: Tensor, scale: float) -> Tensor:
    calls.append(type(x).__name__)
    return scale * x**3


def _save(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.scale = inputs[1]


def _slope(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (x,) = ctx.saved_tensors
    return 3 * ctx.scale * x**2 * grad, None


SCHEMA = "(Tensor x, float scale) -> Tensor"
cube = Operator("asgat_test::cube", SCHEMA, _cube, lambda x, scale: torch.empty_like(x), _save, _slope)
plain_cube = Operator("asgat_test::plain_cube", SCHEMA, _cube, lambda x, scale: torch.empty_like(x))


def test_value_and_gradient() -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(cube(x, 2.0), 2 * x**3)
    assert torch.autograd.gradcheck(lambda y: cube(y, 2.0), x)


@pytest.mark.parametrize("call", [cube, cube.registered], ids=["eager", "registered"])
def test_a_second_derivative_is_refused(call: Any) -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(call(x, 2.0).sum(), x, create_graph=True)
    torch.testing.assert_close(grad, 6 * x**2)
    with pytest.raises(AsgatError, match="first derivatives only"):
        torch.autograd.grad(grad.sum(), x)


def test_compiled_it_is_one_operator() -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    calls.clear()
    compiled = torch.compile(lambda y: cube(y, 2.0) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), 2 * x**3 + 1)
    assert calls == ["Tensor"], "nothing looked inside while compiling"


def test_registered_as_it_should() -> None:
    opcheck(cube, torch.randn(3, dtype=torch.float64, requires_grad=True), 2.0)


def test_without_backward_there_is_no_gradient() -> None:
    out = plain_cube(torch.ones(2), 1.0)
    assert not out.requires_grad
    with pytest.raises(RuntimeError):
        out.sum().backward()
