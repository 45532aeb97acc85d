"""Settings that reach the filter, the operator and the model."""

from typing import Any

import pytest
import scipy.sparse as sp
import torch
from tests import dense
from tests.strategies import ZOO

from asgat.config import LARGEST, ASGATConfig, ASGATDeepConfig
from asgat.data import contextual_sbm
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter
from asgat.graph import Graph
from asgat.nn.ensemble import Ensemble
from asgat.nn.from_config import build_model, make_filter, make_operator
from asgat.nn.memory_plan import choose_form, plan
from asgat.nn.registry import make_config, model_spec
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator
from asgat.tables import ArmaTableOperator, TableOperator

GRAPH = ZOO["generic"]
MEDIUM = contextual_sbm(num_nodes=600, mean_degree=4.0, num_features=2).graph


@pytest.mark.parametrize(
    ("values", "kind", "attributes"),
    [
        ({}, MLPFilter, {"heads": 3, "output_activation": "none"}),
        ({"filter_activation": "relu"}, MLPFilter, {"output_activation": "relu"}),
        ({"filter": "heat", "heat_scale": 2.5}, HeatFilter, {"scale": 2.5}),
        ({"filter": "polynomial"}, PolynomialFilter, {"heads": 3, "degree": 3}),
    ],
)
def test_make_filter(values, kind, attributes):
    filter = make_filter(ASGATConfig(**values))(3)
    assert type(filter) is kind
    assert {key: getattr(filter, key) for key in attributes} == attributes


def test_make_filter_sizes():
    mlp: Any = make_filter(ASGATConfig(filter_hidden=(5, 6)))(2)
    assert [(layer.in_features, layer.out_features) for layer in mlp.layers] == [(1, 5), (5, 6), (6, 2)]


@pytest.mark.parametrize(
    ("graph", "changes", "form", "kind"),
    [
        (GRAPH, {}, "dense", ChebyshevOperator),
        (GRAPH, {"operator": "exact"}, "exact", ExactOperator),
        (GRAPH, {"form": "table"}, "exact table", TableOperator),
        (MEDIUM, {}, "exact table", TableOperator),
        (MEDIUM, {"k": None}, "dense", ChebyshevOperator),
        (MEDIUM, {"k": 600}, "dense", ChebyshevOperator),
        (MEDIUM, {"k": LARGEST}, "dense", ChebyshevOperator),
        (MEDIUM, {"form": "dense"}, "dense", ChebyshevOperator),
        (MEDIUM, {"builder": "truncated"}, "truncated table", TableOperator),
        (MEDIUM, {"candidates": LARGEST, "cap": LARGEST, "order": 2}, "exact table", TableOperator),
        (GRAPH, {"operator": "arma"}, "dense", ArmaOperator),
        (MEDIUM, {"operator": "arma"}, "exact table", ArmaTableOperator),
        (MEDIUM, {"operator": "arma", "form": "dense"}, "dense", ArmaOperator),
        (MEDIUM, {"operator": "arma", "builder": "truncated"}, "truncated table", ArmaTableOperator),
    ],
)
def test_the_form_that_is_planned_is_built(graph, changes, form, kind):
    config = ASGATConfig(**changes)
    assert choose_form(graph, config) == plan(graph, config).form == form
    operator: Any = make_operator(graph, config)
    assert type(operator) is kind
    if "table" in form:
        assert operator.table.exact == (form == "exact table")


@pytest.mark.parametrize(
    ("changes", "form", "kind"),
    [
        ({"channels": "filters"}, "matrix", ChebyshevOperator),
        ({"channels": "mean"}, "matrix", ChebyshevOperator),
        ({"channels": "filters", "form": "table"}, "exact table", TableOperator),
        ({"channels": "filters", "operator": "exact"}, "exact", ExactOperator),
        ({"channels": "attention+filters"}, "exact table", TableOperator),
    ],
    ids=str,
)
@pytest.mark.parametrize("directed", [False, True])
def test_the_deep_model_has_a_table_if_it_attends(changes, form, kind, directed):
    graph = Graph.from_scipy(sp.triu(MEDIUM.adjacency), directed=directed)
    config = ASGATDeepConfig(**changes, order=4, hidden=8, heads=2)
    estimate = plan(graph, config)
    operator: Any = make_operator(graph, config)
    assert (estimate.form, type(operator)) == (form, kind)
    assert operator.num_nodes == (2 if directed else 1) * graph.num_nodes
    if form == "matrix":
        assert operator._cached is None
        assert estimate.parts["attention"] == 0
        assert estimate.bytes < 1 << 25
    assert 0 < estimate.parts["features"] < plan(graph, config.replace(layers=4)).parts["features"]
    net = build_model(config, 3, 2, directed=directed)
    assert net(torch.randn(graph.num_nodes, 3), operator).shape == (graph.num_nodes, 2)


def test_settings_reach_the_operator():
    operator: Any = make_operator(GRAPH, ASGATConfig(order=3))
    filter = dense.filters()["mlp"]
    expected = dense.interpolant_scores(GRAPH, filter, 3)
    torch.testing.assert_close(operator.to(dtype=torch.float64).dense(filter), expected, atol=1e-9, rtol=0)
    config = ASGATConfig(form="table", order=1, k=1, cap=1, candidates=1, storage="float16")
    table: Any = make_operator(MEDIUM, config)
    assert table.table.value.dtype == torch.float16
    capped, plain = (TableOperator(MEDIUM, 1, candidates=1, cap=cap).table.index for cap in (1, 256))
    assert torch.equal(table.table.index, capped)
    assert not torch.equal(capped, plain)


@pytest.mark.parametrize("bias", [True, False])
def test_layers_have_a_bias_if_the_settings_say_so(bias):
    net: Any = build_model(ASGATConfig(bias=bias, hidden=4, layers=3, order=3), 3, 2)
    assert [conv.bias is not None for conv in net.convs] == [bias] * 3


@pytest.mark.parametrize("graph", [GRAPH, MEDIUM], ids=["small", "medium"])
def test_a_k_above_the_number_of_nodes_means_all_that_are_reachable(graph):
    torch.manual_seed(0)
    everything: Any = build_model(ASGATConfig(k=None, hidden=4, order=3), 3, 2)
    huge: Any = build_model(ASGATConfig(k=1_000_000, hidden=4, order=3), 3, 2)
    huge.load_state_dict(everything.state_dict())
    x = torch.randn(graph.num_nodes, 3)
    outputs = [
        net.eval()(x, make_operator(graph, ASGATConfig(k=net.layers[0].k, order=3))) for net in (everything, huge)
    ]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=0, atol=1e-5)


def test_members_make_an_ensemble_of_different_networks():
    net: Any = build_model(ASGATConfig(members=3, hidden=4), 3, 2)
    members: list[Any] = list(net.members)
    first, second, third = (member.layers[0].weight for member in members)
    assert type(net) is Ensemble
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)


def test_options_reach_the_model():
    every = make_config("asgat-plus", mix=True, jump=True, adjacency=True, propagate=True, alpha=0.4, gain=0.5)
    net: Any = model_spec("asgat-plus").make(every, 4, 2, 9)
    assert all(conv.mix is not None for conv in net.layers)
    assert [conv.gain for conv in net.layers] == [0.5, 0.5]
    assert net.jump_weight.shape == (13, 2)
    assert (net.propagation.alpha, net.propagation.steps) == (0.4, 10)
    assert net.layers[0].weight.shape[0] == 13
    plain: Any = model_spec("asgat-plus").make(make_config("asgat-plus"), 4, 2, 9)
    assert [conv.mix for conv in plain.layers] == [None, None]
    assert (plain.jump_weight, plain.num_nodes, plain.propagation) == (None, None, None)


def test_asgat_settings_reach_the_model():
    config = make_config("asgat-plus", heads=3, out_heads=2, k=None, elu="last", dropout=0.25)
    net: Any = model_spec("asgat-plus").build(config, 4, 2)
    assert net.elu == "last"
    assert [conv.heads for conv in net.layers] == [3, 2]
    for conv in net.layers:
        assert (conv.k, conv.dropout, conv.include_unreachable) == (None, 0.25, False)
        assert conv.root_weight is not None
