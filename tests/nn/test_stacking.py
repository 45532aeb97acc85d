"""Stacked runs: to the last bit what each model gives alone, on the CPU."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from tests.strategies import ZOO
from torch import Tensor, nn

from asgat.filters import BandStop, HeatFilter, MLPFilter, PolynomialFilter, WalkFilter
from asgat.graph import Graph
from asgat.kernels import dropout_seeds
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import ASGAT
from asgat.nn.stacking import stack
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

FEATURES = 7
OPERATORS: dict[str, Any] = {
    "exact": ExactOperator,
    "chebyshev": partial(ChebyshevOperator, order=4),
    "table": partial(TableOperator, order=4, candidates=4),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"root": True, "out_heads": 2, "elu": "hidden"},
    {"mix": True, "jump": True, "num_layers": 3, "elu": "last"},
    {"root": True, "gain": 0.3, "heads": 1},
    {"num_layers": 1, "elu": "none"},
    {"root": True, "mix": True, "out_heads": 3, "propagate": True, "alpha": 0.4},
    {"filter": HeatFilter},
    {"filter": partial(HeatFilter, scale=0.7, learned=True)},
    {"filter": PolynomialFilter},
    {"filter": WalkFilter},
    {"filter": lambda heads: BandStop(MLPFilter(heads, hidden=(5,)), 0.5, 1.0)},
    {"filter": partial(MLPFilter, hidden=(6, 5), output_activation="relu")},
    {"filter": partial(MLPFilter, hidden=(6, 5), exact_bias=True)},
]


def features(graph: Graph, sparse: bool, dtype: torch.dtype) -> Tensor | SparseFeatures:
    x = torch.randn(graph.num_nodes, FEATURES, generator=torch.Generator().manual_seed(1)).to(dtype)
    return SparseFeatures.from_dense(x * (x > 0.3), dtype=dtype) if sparse else x


def make(run: int, dtype: torch.dtype, dropout: float = 0.0, kind: type[ASGAT] = ASGAT, **options: Any) -> ASGAT:
    torch.manual_seed(run)
    return kind(FEATURES, 4, 3, dropout=dropout, **{"heads": 2, "k": 3, **options}).to(dtype)


def seeds_of(runs: list[int], dropout: list[float]) -> Any:
    """Draws for each run what it would draw alone; nothing for a run without dropout."""
    generators = [torch.Generator().manual_seed(100 + run) for run in runs]

    def draw() -> Tensor:
        drawn = zip(generators, dropout, strict=True)
        return torch.stack([torch.randint(2**62, (), generator=g) if p else torch.tensor(0) for g, p in drawn])

    return draw


Outcome = tuple[Tensor, dict[str, Tensor | None], Tensor]


def alone(model: nn.Module, run: int, inputs: tuple[Any, ...]) -> Outcome:
    """Training logits, gradients of all parameters and evaluation logits of a single model."""
    model = copy.deepcopy(model).train()
    torch.manual_seed(100 + run)
    return outcome(model, inputs)


def outcome(model: nn.Module, inputs: tuple[Any, ...]) -> Outcome:
    out = model.train()(*inputs)
    out.backward(
        torch.sin(1.0 + torch.arange(out[..., :, :].numel())).to(out).view(out.shape)[..., :, :]
        if out.dim() == 2
        else torch.sin(1.0 + torch.arange(out[0].numel())).to(out).view(out.shape[1:]).expand_as(out)
    )
    with torch.no_grad():
        evaluated = model.eval()(*inputs)
    return out.detach(), {name: value.grad for name, value in model.named_parameters()}, evaluated


def in_a_stack(models: list[ASGAT], runs: list[int], inputs: tuple[Any, ...]) -> Outcome:
    stacked = stack([models[run] for run in runs])
    with dropout_seeds(seeds_of(runs, [models[run].dropout for run in runs])):
        return outcome(stacked, inputs)


def assert_same(single: Outcome, stacked: Outcome, row: int) -> None:
    logits, gradients, evaluated = single
    assert torch.equal(stacked[0][row], logits)
    assert torch.equal(stacked[2][row], evaluated)
    assert gradients.keys() == stacked[1].keys()
    for name, value in gradients.items():
        own = stacked[1][name]
        assert (own is None) == (value is None), name
        assert value is None or torch.equal(own[row], value), name


def check(graph: Graph, operator: str, dtype: torch.dtype, sparse: bool, dropout: list[float], **options: Any) -> None:
    inputs = features(graph, sparse, dtype), OPERATORS[operator](graph, dtype=dtype)
    models = [make(run, dtype, dropout[run], **options) for run in range(3)]
    singles = [alone(model, run, inputs) for run, model in enumerate(models)]
    for runs in ([0, 1, 2], [2, 0], [0], [1]):
        stacked = in_a_stack(models, runs, inputs)
        for row, run in enumerate(runs):
            assert_same(singles[run], stacked, row)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_option(options, operator, sparse, dtype):
    check(ZOO["generic too"], operator, dtype, sparse, [0.3, 0.0, 0.6], **options)


@pytest.mark.parametrize("name", [name for name in ZOO if name != "no nodes"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_graph(name, operator):
    check(ZOO[name], operator, torch.float32, False, [0.3, 0.0, 0.6], root=True)
