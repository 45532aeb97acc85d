"""Second derivatives, of any function and layer: an error that says there are none, or the right value."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.strategies import ZOO
from torch import Tensor

import asgat
from asgat.errors import AsgatError
from asgat.kernels import gather_sum
from asgat.kernels.dense_matmul import dense_matmul
from asgat.kernels.once_differentiable import _FirstDerivatives, once_differentiable
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import ASGAT, ASGATConv, ASGATDeep, SpectralFilterConv
from asgat.spectral import ChebyshevOperator
from asgat.tables import TableOperator

SOURCE = Path(asgat.__file__).parent
GRAPH = ZOO["generic"]
NONE = "first derivatives only"
STEP = 1e-6
TWICE = {  # their gradients are made of what has gradients; tests that they are right
    "_Matmul": "tests below",
    "Solve": "tests/spectral/test_conjugate_gradients.py",
}


def subclasses(of: Any) -> Iterator[Any]:
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_autograd_function_is_differentiable_once_or_tested_twice() -> None:
    for path in SOURCE.rglob("*.py"):
        if any(word in path.read_text() for word in ("Function", "Operator(", "elementwise(")):
            import_module(".".join(("asgat", *path.relative_to(SOURCE).with_suffix("").parts)))
    found = {one for one in subclasses(torch.autograd.Function) if one.__module__.startswith("asgat.")}
    marked = once_differentiable(print).__code__
    assert {f.__name__ for f in found - {_FirstDerivatives} if f.backward.__code__ is not marked} == set(TWICE)
    assert {"gather_sum", "_AttentionSum", "_Exchange"} < {one.__name__ for one in found}


def test_operators_are_registered_in_one_place() -> None:
    places = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if "torch.library" in path.read_text()}
    assert places == {"kernels/operator.py"}


def test_another_path_to_the_same_input_does_not_hide_the_missing_one() -> None:
    x, index = torch.ones(3, 2, requires_grad=True), torch.tensor([[0, 1]])
    weight = torch.ones(1, 2, requires_grad=True)
    total = gather_sum(x, index, weight).square().sum() + x.square().sum()
    (grad,) = torch.autograd.grad(total, x, create_graph=True)
    with pytest.raises(AsgatError, match=NONE):
        torch.autograd.grad(grad.sum(), x)
    with pytest.raises(AsgatError, match=NONE):
        grad.sum().backward()


def test_products_have_second_derivatives() -> None:
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (3, 2))]
    assert torch.autograd.gradgradcheck(dense_matmul, inputs)


def arma() -> SpectralFilterConv:
    made = SpectralFilterConv(3, 4, 2, operator="arma")
    made.filter.requires_grad_(False)  # gradients treat the fit's denominator as a constant
    return made


def table(graph: Any, dtype: torch.dtype, device: torch.device) -> TableOperator:
    return TableOperator(graph, 4, candidates=6, dtype=dtype, device=device)


conv, deep = partial(ASGATConv, 3, 2, heads=2, k=3, order=4), partial(ASGATDeep, 3, 4, 2, 2, 2, 3, order=4)
LAYERS: dict[str, Callable[[], Any]] = {
    "conv": conv,
    "conv, all scores": partial(conv, k=None),
    "conv, exact": partial(conv, operator="exact"),
    "conv, table": partial(conv, operator=table),
    "conv, averaged": partial(conv, concat=False, root=True, mix=True, dropout=0.3),
    "conv, directed": partial(conv, directed=True),
    "filters": partial(SpectralFilterConv, 3, 4, 2, order=4),
    "filters, exact": partial(SpectralFilterConv, 3, 4, 2, operator="exact"),
    "filters, arma": arma,
    "model": partial(ASGAT, 3, 4, 2, heads=2, k=3, order=4, dropout=0.3, jump=True),
    "deep": deep,
    "deep, directed": partial(deep, directed=True),
}


@pytest.mark.parametrize("linear", [True, False], ids=["linear", "cubic"])
@pytest.mark.parametrize("layer", LAYERS)
def test_of_layers_they_are_refused_or_right(layer: str, linear: bool) -> None:
    """For every two inputs or parameters: one is moved along a line, the gradient of the other is projected on one.

    Of a linear function of outputs, the gradient that reaches the layer is constant.
    """
    torch.manual_seed(0)
    net = LAYERS[layer]().double()
    x = torch.randn(14, 3, dtype=torch.float64, requires_grad=True)
    tensors = [x, *(parameter for parameter in net.parameters() if parameter.requires_grad)]

    def slopes(create_graph: bool = False) -> list[Tensor]:
        torch.manual_seed(1)
        out = net(x, GRAPH)
        grads = torch.autograd.grad((out if linear else out**3).sum(), tensors, create_graph=create_graph)
        return [(grad * torch.linspace(-1, 1, grad.numel(), dtype=grad.dtype).view_as(grad)).sum() for grad in grads]

    def differences(moved: Tensor, line: Tensor) -> list[Tensor]:
        moved.data += STEP * line
        above = slopes()
        moved.data -= 2 * STEP * line
        below = slopes()
        moved.data += STEP * line
        return [(one - other) / (2 * STEP) for one, other in zip(above, below, strict=True)]

    first = slopes(create_graph=True)
    torch.testing.assert_close(first, slopes(), rtol=1e-9, atol=1e-9)
    for moved in tensors:
        line, expected = torch.linspace(1, -0.5, moved.numel(), dtype=moved.dtype).view_as(moved), list[Tensor]()
        for i, slope in enumerate(first):
            try:
                (found,) = (
                    torch.autograd.grad(slope, moved, retain_graph=True, materialize_grads=True)
                    if slope.requires_grad
                    else (torch.zeros_like(moved),)
                )
            except AsgatError:
                continue
            expected = expected or differences(moved, line)
            torch.testing.assert_close((found * line).sum(), expected[i], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layer", ["conv", "filters", "model", "deep"])
def test_a_gradient_penalty_is_refused(layer: str) -> None:
    net, x = LAYERS[layer](), torch.randn(14, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(net(x, GRAPH).square().sum(), x, create_graph=True)
    with pytest.raises(AsgatError, match=NONE):
        grad.square().sum().backward()


def test_of_sparse_features_too() -> None:
    net, x = LAYERS["conv"](), SparseFeatures.from_dense(torch.eye(14)[:, :3])
    (grad,) = torch.autograd.grad(net(x, GRAPH).square().sum(), net.weight, create_graph=True)
    with pytest.raises(AsgatError, match=NONE):
        grad.square().sum().backward()


def test_compiled_layers_refuse_them_too() -> None:
    net, x = LAYERS["conv"](), torch.randn(14, 3, requires_grad=True)
    compiled = torch.compile(net, backend="eager")
    (grad,) = torch.autograd.grad(compiled(x, ChebyshevOperator(GRAPH, 4)).square().sum(), x, create_graph=True)
    with pytest.raises(AsgatError, match=NONE):
        grad.square().sum().backward()
