from typing import Any

import pytest
import torch
from tests import dense
from tests.strategies import ZOO

from asgat.config import ASGATConfig, TrainConfig
from asgat.errors import AsgatError
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter
from asgat.nn import ASGAT
from asgat.nn.baselines import GCN, MLP
from asgat.nn.registry import MODELS, make_config, make_filter, make_operator, model_spec
from asgat.spectral import ChebyshevOperator, ExactOperator

CPU = torch.device("cpu")
GRAPH = ZOO["generic"]
every_model = pytest.mark.parametrize("name", list(MODELS))
FIXED = [(name, key) for name, spec in MODELS.items() for key in spec.fixed]
OTHER = {"operator": {"chebyshev": "exact", "exact": "chebyshev"}, "filter": {"mlp": "heat", "heat": "mlp"}}


@every_model
def test_every_model_is_built_runs_and_learns_something(name):
    torch.manual_seed(0)
    spec, config = model_spec(name), make_config(name, hidden=4, dropout=0.0)
    net = spec.build(config, 3, 2)
    out = net(torch.randn(14, 3), *spec.prepare(GRAPH, config, CPU))
    assert out.shape == (14, 2)
    out.square().sum().backward()
    assert any(p.grad is not None and (p.grad != 0).any() for p in net.parameters())
    assert spec.summary


@every_model
def test_settings_survive_being_written_and_read(name):
    config = make_config(name)
    assert make_config(name, **config.to_dict()) == config
    changed = make_config(name, lr=0.5, layers=3)
    assert make_config(name, **changed.to_dict()) == changed
    assert changed != config


@every_model
def test_texts_survive_being_parsed(name):
    config = make_config(name)
    parsed = {key: config.parse(key, str(value)) for key, value in config.to_dict().items()}
    assert make_config(name, **parsed) == config


@pytest.mark.parametrize(("name", "key"), FIXED)
def test_what_a_name_stands_for_cannot_be_changed(name, key):
    fixed = MODELS[name].fixed[key]
    assert getattr(make_config(name), key) == fixed
    assert getattr(make_config(name, **{key: fixed}), key) == fixed
    other = not fixed if isinstance(fixed, bool) else OTHER[key][fixed]
    with pytest.raises(AsgatError, match=f"{name} stands for {key} = {fixed}; it cannot be set to {other}"):
        make_config(name, **{key: other})


def test_some_names_stand_for_something():
    assert {name for name, _ in FIXED} == {"asgat-cheb", "asgat-exact", "asgat-heat"}
    assert all(("root", False) in MODELS[name].fixed.items() for name, _ in FIXED), "the paper has no root term"


def test_asgat_plus_starts_with_a_root_and_may_go_without():
    assert make_config("asgat-plus").to_dict()["root"] is True
    assert make_config("asgat-plus", root=False).to_dict()["root"] is False
    assert make_config("asgat-plus", filter="heat", operator="exact").to_dict()["filter"] == "heat"


@every_model
def test_unknown_settings_are_named_with_the_nearest(name):
    with pytest.raises(AsgatError, match=f"{name} has no setting 'droput'. Did you mean 'dropout'"):
        make_config(name, droput=0.5)


def test_settings_of_other_models_are_unknown():
    with pytest.raises(AsgatError, match="gcn has no setting 'heads'"):
        make_config("gcn", heads=3)


def test_bad_values_are_refused():
    with pytest.raises(AsgatError, match="k must be at least 1, but is 0"):
        make_config("asgat-cheb", k=0)
    with pytest.raises(AsgatError, match="heads must be a whole number, not '8'"):
        make_config("asgat-cheb", heads="8")


def test_unknown_models_are_named_with_the_nearest():
    for function in (model_spec, make_config):
        with pytest.raises(AsgatError, match=r"Unknown model 'asgat-chep'. Did you mean 'asgat-cheb'.*gcn"):
            function("asgat-chep")


@pytest.mark.parametrize(
    ("values", "kind", "attributes"),
    [
        ({}, MLPFilter, {"heads": 3, "output_activation": "none"}),
        ({"filter_activation": "relu"}, MLPFilter, {"output_activation": "relu"}),
        ({"filter": "heat", "heat_scale": 2.5}, HeatFilter, {"scale": 2.5}),
        ({"filter": "polynomial", "filter_degree": 5}, PolynomialFilter, {"degree": 5}),
    ],
)
def test_make_filter(values, kind, attributes):
    filter = make_filter(ASGATConfig(**values))(3)
    assert type(filter) is kind
    assert {key: getattr(filter, key) for key in attributes} == attributes


def test_make_filter_sizes_and_learned_scale():
    mlp: Any = make_filter(ASGATConfig(filter_hidden=(5, 6)))(2)
    assert [(layer.in_features, layer.out_features) for layer in mlp.layers] == [(1, 5), (5, 6), (6, 2)]
    assert len(list(make_filter(ASGATConfig(filter="heat", heat_learned=True))(2).parameters())) == 1


def test_make_operator():
    assert isinstance(make_operator(GRAPH, ASGATConfig(operator="exact"), CPU), ExactOperator)
    config = ASGATConfig(order=3, sampling_points=8, lambda_max="lanczos", damping=True)
    operator = make_operator(GRAPH, config, CPU)
    assert isinstance(operator, ChebyshevOperator)
    filter = dense.filters()["mlp"]
    expected = dense.interpolant_scores(GRAPH, filter, 3, 8, GRAPH.lambda_max, damping=True)
    torch.testing.assert_close(operator.to(dtype=torch.float64).dense(filter), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("name", "kind"), [("asgat-cheb", ASGAT), ("asgat-plus", ASGAT), ("mlp", MLP), ("gcn", GCN)])
def test_settings_reach_the_model(name, kind):
    net: Any = model_spec(name).build(make_config(name, layers=3, hidden=7), 4, 2)
    assert type(net) is kind
    assert len(net.layers) == 3


def test_asgat_settings_reach_the_model():
    config = make_config("asgat-plus", heads=3, out_heads=2, k=None, elu="last", dropout=0.25, include_unreachable=True)
    net: Any = model_spec("asgat-plus").build(config, 4, 2)
    assert net.elu == "last"
    assert [conv.heads for conv in net.layers] == [3, 2]
    for conv in net.layers:
        assert (conv.k, conv.dropout, conv.include_unreachable) == (None, 0.25, True)
        assert conv.root is not None


def test_what_the_baselines_are_given():
    config = TrainConfig()
    assert model_spec("mlp").prepare(GRAPH, config, CPU) == ()
    edges, weight = model_spec("gcn").prepare(GRAPH, config, CPU)
    rebuilt = torch.zeros(14, 14).index_put(tuple(edges), weight)
    torch.testing.assert_close(rebuilt, torch.from_numpy(GRAPH.adjacency.toarray()).float())


def test_every_module_of_baselines_is_registered():
    import asgat.nn.baselines as baselines

    assert {name.lower() for name in baselines.__all__} <= set(MODELS)
