from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import ASGAT
from asgat.nn.asgat_linear import ASGATLinear
from asgat.nn.stacked_asgat import StackedASGAT
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

RUNS, NODES, FEATURES = 3, 20, 6
OPERATORS: dict[str, Any] = {
    "exact": ExactOperator,
    "dense": lambda graph, **kind: ChebyshevOperator(graph, order=4, **kind),
    "table": lambda graph, **kind: TableOperator(graph, order=4, candidates=4, **kind),
}
OPTIONS = [
    {},
    {"root": True, "out_heads": 2, "elu": "hidden"},
    {"mix": True, "jump": True, "num_layers": 3, "elu": "last"},
    {"root": True, "gain": 0.3},
    {"k": None, "num_layers": 1, "elu": "none"},
    {"root": True, "heads": 1},
    {"root": True, "propagate": True, "alpha": 0.4},
]


def graph():
    """Random weights: no two nodes are alike, so that no scores tie."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, NODES - 2, size=(2, 40))  # the last two are isolated
    return Graph.from_edges(edges, NODES, rng.uniform(0.5, 2.0, 40))


def models_and_stack(options, kind, sparse=False, dtype=torch.float64, dropout=(0.0, 0.3, 0.6)):
    x = torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(1)).to(dtype)
    x = x * (x > 0.3) if sparse else x
    features = SparseFeatures.from_dense(x, dtype=dtype) if sparse else x
    operator = OPERATORS[kind](graph(), dtype=dtype)
    settings = {"heads": 2, "k": 3, **options}
    models = []
    for run in range(RUNS):
        torch.manual_seed(run)
        models.append(ASGAT(FEATURES, 4, 3, dropout=dropout[run], **settings).to(dtype))
    state = {
        name: torch.stack([m.state_dict()[name] for m in models]).requires_grad_() for name in models[0].state_dict()
    }
    return models, features, operator, StackedASGAT(models[0], state, features, operator, dropout)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("sparse", [False, True])
def test_logits_and_gradients_are_those_of_each_model_alone(options, operator, sparse):
    if operator == "table" and options.get("k", 3) is None:
        pytest.skip("a table needs a k")
    models, x, graph_operator, together = models_and_stack(options, operator, sparse)
    drawn = []
    logits = []
    for run, model in enumerate(models):
        torch.manual_seed(100 + run)
        drawn.append(torch.randint(2**62, (together.dropouts,)))
        torch.manual_seed(100 + run)
        logits.append(model.train()(x, graph_operator))
    out = together(torch.stack(drawn, dim=1))
    torch.testing.assert_close(out, torch.stack(logits))
    factor = torch.randn(out.shape, dtype=out.dtype)
    (out * factor).sum().backward()
    for run, model in enumerate(models):
        (logits[run] * factor[run]).sum().backward()
        for name, value in model.named_parameters():
            torch.testing.assert_close(together.state[name].grad[run], value.grad)
    with torch.no_grad():
        torch.testing.assert_close(together(), torch.stack([model.eval()(x, graph_operator) for model in models]))


@pytest.mark.parametrize("sparse", [False, True])
def test_single_precision_agrees_too(sparse):
    models, x, operator, together = models_and_stack(OPTIONS[1], "table", sparse, torch.float32)
    with torch.no_grad():
        expected = torch.stack([model.eval()(x, operator) for model in models])
        torch.testing.assert_close(together(), expected, rtol=1e-4, atol=1e-5)


def test_nothing_passes_between_runs():
    _, _, _, together = models_and_stack(OPTIONS[1], "table")
    with torch.no_grad():
        before = together()
        together.state["layers.0.weight"][1] = float("nan")
    logits = together()
    assert logits[1].isnan().all()
    (gradient,) = torch.autograd.grad(logits.sum(), together.state["layers.1.weight"])
    assert gradient[[0, 2]].isfinite().all()
    assert torch.equal(logits[[0, 2]], before[[0, 2]])


def test_it_serves_the_model_it_knows():
    assert StackedASGAT.serves(ASGAT(3, 4, 2, root=True, mix=True, jump=True, propagate=True))
    assert not StackedASGAT.serves(ASGATLinear(3, 4, 2))
    assert not StackedASGAT.serves(nn.Linear(3, 2))
    other = ASGAT(3, 4, 2)
    other.extra = nn.Parameter(torch.zeros(1))
    assert not StackedASGAT.serves(other)
