"""Stacked runs: to the last bit what each model gives alone, on the CPU."""

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.kernels.devices import CUDA
from tests.strategies import ZOO
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters import BandStop, HeatFilter, MLPFilter, PolynomialFilter
from asgat.graph import Graph
from asgat.kernels import dropout_seeds
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import ASGAT, ASGATConv, ASGATDeep
from asgat.nn.baselines import MLP
from asgat.nn.ensemble import Ensemble
from asgat.nn.stacking import count_dropouts, load_run_state, stack, stackable
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator
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
    {"bias": False, "elu": "last"},
    {"mix": True, "jump": True, "num_layers": 3, "elu": "last"},
    {"root": True, "gain": 0.3, "heads": 1},
    {"num_layers": 1, "elu": "none"},
    {"root": True, "mix": True, "out_heads": 3, "propagate": True, "alpha": 0.4},
    {"filter": HeatFilter},
    {"filter": partial(HeatFilter, scale=0.7, learned=True)},
    {"filter": PolynomialFilter},
    {"filter": lambda heads: BandStop(MLPFilter(heads, hidden=(5,)), 0.5, 1.0)},
    {"filter": partial(MLPFilter, hidden=(6, 5), output_activation="relu")},
    {"filter": partial(MLPFilter, hidden=(6, 5), exact_bias=True)},
    {"deep": True, "channels": "attention+filters+mean", "input_dropout": True},
    {"deep": True, "channels": "filters", "num_layers": 1},
    {"deep": True, "directed": True, "channels": "attention+filters+mean"},
    {"directed": True, "root": True, "out_heads": 2, "propagate": True},
]


def features(graph: Graph, sparse: bool, dtype: torch.dtype) -> Tensor | SparseFeatures:
    x = torch.randn(graph.num_nodes, FEATURES, generator=torch.Generator().manual_seed(1)).to(dtype)
    return SparseFeatures.from_dense(x * (x > 0.3), dtype=dtype) if sparse else x


def make(run: int, dtype: torch.dtype, dropout: float = 0.0, deep: bool = False, **options: Any) -> Any:
    torch.manual_seed(run)
    kind = ASGATDeep if deep else ASGAT
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
    shape = out.shape[-2:]
    out.backward(torch.sin(1.0 + torch.arange(shape.numel())).view(shape).to(out).expand_as(out))
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
        if value is None or own is None:
            assert own is value, name
        else:
            assert torch.equal(own[row], value), name


def check(
    graph: Graph,
    operator: str,
    dtype: torch.dtype = torch.float32,
    sparse: bool = False,
    dropout: tuple[float, ...] = (0.3, 0.0, 0.6),
    **options: Any,
) -> None:
    covered = graph.double_cover if options.get("directed") else graph
    inputs = features(graph, sparse, dtype), OPERATORS[operator](covered, dtype=dtype)
    models = [make(run, dtype, p, **options) for run, p in enumerate(dropout)]
    singles = [alone(model, run, inputs) for run, model in enumerate(models)]
    for runs in (list(range(len(models))), [2, 0], [0], [1]):
        stacked = in_a_stack(models, runs, inputs)
        for row, run in enumerate(runs):
            assert_same(singles[run], stacked, row)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "default")
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_option(options, operator, sparse, dtype):
    check(ZOO["generic too"], operator, dtype, sparse, **options)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_graph(name, operator):
    check(ZOO[name], operator, root=True)


@pytest.mark.parametrize("elu", ["every", "hidden", "last", "none"])
def test_every_place_of_the_elu(elu):
    check(ZOO["generic"], "table", elu=elu)


@pytest.mark.parametrize("operator", ["exact", "chebyshev"])
def test_attention_to_all_nodes(operator):
    check(ZOO["generic"], operator, k=None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_linear_last_layer(dtype):
    check(ZOO["generic"], "table", dtype, linear=True, jump=True)


def test_scores_by_rational_functions():
    OPERATORS["arma"] = partial(ArmaOperator, numerator=3, denominator=2)
    check(ZOO["generic"], "arma", torch.float64)


@pytest.mark.parametrize("threads", [1, 2])
def test_work_for_several_threads(threads):
    """Enough of it that kernels and PyTorch's sums start threads for the stack, and some already for one run."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        options: Any = {"root": True, "mix": True, "jump": True, "propagate": True, "heads": 4, "k": 4}
        ends = np.random.default_rng(0).integers(0, 2000, (2, 5000))
        check(Graph.from_edges(ends, 2000), "table", dropout=(0.3, 0.0, 0.6, 0.5, 0.2), sparse=True, **options)
    finally:
        torch.set_num_threads(before)


def test_a_layer_alone():
    graph = ZOO["generic"]
    x, operator = features(graph, False, torch.float32), ChebyshevOperator(graph, order=4)
    layers = [ASGATConv(FEATURES, 4, heads=2, k=3, root=True) for _ in range(3)]
    stacked = stack(layers)
    out, attention = stacked(x, operator, return_attention_weights=True)
    for row, layer in enumerate(layers):
        own, single = layer(x, operator, return_attention_weights=True)
        assert torch.equal(out[row], own)
        assert torch.equal(attention.index[row], single.index)
        assert torch.equal(attention.weight[row], single.weight)
    (one,) = stack(layers[:1])(x, operator)
    assert torch.equal(one, out[0])


def test_without_given_seeds_they_come_from_the_global_generator():
    x, graph = torch.randn(6, FEATURES), ZOO["path"]
    model = make(0, torch.float32, 0.5).train()
    outputs = []
    for one in (model, stack([model])):
        torch.manual_seed(3)
        outputs.append(one(x, graph))
    assert torch.equal(outputs[0], outputs[1][0])
    several = stack([model, model])(x, graph)
    assert not torch.equal(several[0], several[1])


def test_a_single_model_takes_no_given_seeds():
    def refuse() -> Tensor:
        raise AssertionError

    with dropout_seeds(refuse):
        make(0, torch.float32, 0.5).train()(torch.randn(6, FEATURES), ZOO["path"])
    with dropout_seeds(refuse), pytest.raises(AssertionError):
        stack([make(0, torch.float32, 0.5)]).train()(torch.randn(6, FEATURES), ZOO["path"])


@pytest.mark.parametrize(
    ("dropout", "options", "count"),
    [([0.5], {}, 4), ([0, 0.5], {"jump": True}, 5), ([0.0, 0.0], {}, 0), ([0.5], {"num_layers": 3}, 6)],
)
def test_dropouts_are_counted(dropout, options, count):
    stacked = stack([make(0, torch.float32, p, **options) for p in dropout]).eval()
    assert count_dropouts(stacked, torch.randn(6, FEATURES), ZOO["path"]) == count
    assert not stacked.training


def test_nothing_passes_between_runs():
    stacked: Any = stack([make(run, torch.float32, root=True) for run in range(3)])
    x, operator = torch.randn(20, FEATURES), TableOperator(ZOO["generic too"], order=4, candidates=4)
    before = stacked(x, operator)
    with torch.no_grad():
        stacked.convs[0].weight[1] = float("nan")
    logits = stacked(x, operator)
    assert logits[1].isnan().all()
    assert torch.equal(logits[[0, 2]], before[[0, 2]])
    (gradient,) = torch.autograd.grad(logits.sum(), stacked.layers[1].weight)
    assert gradient[[0, 2]].isfinite().all()


def test_weights_of_a_run_are_those_of_its_model():
    models: list[Any] = [make(run, torch.float32, filter=HeatFilter, jump=True) for run in range(3)]
    stacked: Any = stack(models)
    assert stacked.__class__ is ASGAT
    assert stacked.state_dict().keys() == models[0].state_dict().keys()
    assert [p.requires_grad for p in stacked.parameters()] == [p.requires_grad for p in models[0].parameters()]
    for row, model in enumerate(models):
        assert all(torch.equal(stacked.state_dict()[name][row], value) for name, value in model.state_dict().items())
    load_run_state(stacked, 0, models[2].state_dict())
    assert torch.equal(stacked.convs[0].weight[0], models[2].convs[0].weight)
    assert torch.equal(stacked.convs[0].weight[1], models[1].convs[0].weight)


def test_states_that_do_not_fit_are_refused():
    stacked = stack([make(0, torch.float32)])
    with pytest.raises(AsgatError, match="jump_weight"):
        load_run_state(stacked, 0, make(0, torch.float32, jump=True).state_dict())


def test_the_stack_shares_nothing_with_its_models():
    model = make(0, torch.float32)
    before = copy.deepcopy(model.state_dict())
    stacked = stack([model])
    with torch.no_grad():
        for value in stacked.parameters():
            value.fill_(7.0)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.dropout == 0.0


def test_which_models_can_be_stacked():
    assert all(map(stackable, (ASGAT(3, 4, 2), ASGAT(3, 4, 2, linear=True), ASGATConv(3, 4))))
    assert not any(map(stackable, (MLP(3, 4, 2), Ensemble([ASGAT(3, 4, 2)]), nn.Linear(3, 2))))
    for models in ([], [MLP(3, 4, 2)], [ASGAT(3, 4, 2), ASGATConv(3, 4)]):
        with pytest.raises(AsgatError, match="stacked"):
            stack(models)


def seeds_on(device: str, draw: Any) -> Tensor:
    seeds: Tensor = draw().to(device)
    return seeds


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "default")
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("sparse", [False, True])
def test_on_cuda(device, options, operator, sparse):
    """Close to the single models on the CPU, with the same dropout."""
    graph = ZOO["generic too"]
    x = features(graph, sparse, torch.float64)
    models = [make(run, torch.float64, p, **options) for run, p in enumerate((0.3, 0.0, 0.6))]
    held = OPERATORS[operator](graph.double_cover if options.get("directed") else graph, dtype=torch.float64)
    singles = [alone(model, run, (x, held)) for run, model in enumerate(models)]
    for runs in ([0, 1, 2], [2]):
        stacked = stack([models[run].to(device) for run in runs])
        draw = seeds_of(runs, [models[run].dropout for run in runs])
        with dropout_seeds(partial(seeds_on, device, draw)):
            logits, gradients, evaluated = outcome(stacked, (x.to(device), held.to(device)))
        for row, run in enumerate(runs):
            single = singles[run]
            torch.testing.assert_close(logits[row].cpu(), single[0], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(evaluated[row].cpu(), single[2], rtol=1e-5, atol=1e-5)
            for name, value in single[1].items():
                own = gradients[name]
                if value is not None and own is not None:
                    torch.testing.assert_close(own[row].cpu(), value, rtol=1e-5, atol=1e-5)
