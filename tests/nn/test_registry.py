import json
import re
from typing import Any

import pytest
import torch
from tests.strategies import ZOO

from asgat.config import OPTIONS, TrainConfig
from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.nn import ASGAT
from asgat.nn.baselines import GAT, GCN, LINKX, MLP, SAGE, ARMANet, ChebNet
from asgat.nn.registry import COST_LETTERS, MODELS, make_config, model_spec
from asgat.threads import thread_limit
from asgat.training import load_model
from asgat.training.inputs import make_inputs
from asgat.training.loop import train
from asgat.training.objective import evaluate
from asgat.training.runner import run

CPU = torch.device("cpu")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
GRAPH = ZOO["generic"]
every_model = pytest.mark.parametrize("name", list(MODELS))
FIXED = [(name, key) for name, spec in MODELS.items() for key in spec.fixed]
OTHER: dict[str, dict[Any, Any]] = {
    "members": {1: 2},
    "similar": {0: 1},
    "operator": {"chebyshev": "exact", "exact": "arma", "arma": "exact"},
    "filter": {"mlp": "heat", "heat": "mlp"},
}


@every_model
def test_every_model_is_built_runs_and_learns_something(name):
    torch.manual_seed(0)
    spec, config = model_spec(name), make_config(name, hidden=4, dropout=0.0)
    net = spec.make(config, 3, 2, 14)
    out = net(torch.randn(14, 3), *spec.prepare(GRAPH, config, CPU))
    assert out.shape == (14, 2)
    out.square().sum().backward()
    assert any(p.grad is not None and (p.grad != 0).any() for p in net.parameters())
    assert spec.summary
    assert re.search(r", .* (19|20)\d\d$", spec.reference), "who, where and when"
    assert spec.cost.startswith("O(")
    assert all(letter in COST_LETTERS for letter in re.findall(r"[A-Za-z]", spec.cost.removeprefix("O")))


@every_model
def test_every_model_trains_loads_and_is_reproducible(name, tmp_path):
    data = load_dataset("karate")
    config = make_config(name, hidden=4, epochs=4, max_restarts=0, layers=2)
    first, again = (run(data, name, config, [0, 1], out=tmp_path / part) for part in ("first", "again"))
    assert [row["val_loss"] for row in first["rows"]] == [row["val_loss"] for row in again["rows"]]
    history = [json.loads(line) for line in (tmp_path / "first/metrics.jsonl").read_text().splitlines()]
    assert len(history) == 8
    assert history[0]["train_loss"] != history[3]["train_loss"]
    net, kept, settings = load_model(tmp_path / "first")
    assert (kept, settings) == (name, config)
    best = max(first["rows"], key=lambda row: row["val_score"])
    y = torch.from_numpy(data.y)
    with thread_limit(1):  # as in the training: a rational fit makes much of another rounding
        figures = evaluate(net, make_inputs(data, name, config, CPU), y, data.splits[best["run"]], "micro_f1")
    assert figures["val_loss"] == pytest.approx(best["val_loss"], rel=1e-5)


@needs_gpu
@every_model
def test_every_model_is_captured_on_a_gpu_and_learns_what_it_learns_on_a_cpu(name):
    data = load_dataset("karate")
    still: dict[str, float | None] = {key: 0.0 for key in make_config(name).to_dict() if key.endswith("dropout")}
    if "k" in make_config(name).to_dict():  # karate has twins, and rounding decides which of them is among the k best
        still["k"] = None
    config = make_config(name, hidden=4, epochs=20, max_restarts=0, **still)
    spec, split = model_spec(name), data.splits[0]
    weights = spec.make(config, data.num_features, data.num_classes, data.num_nodes).state_dict()

    def build():
        net = spec.make(config, data.num_features, data.num_classes, data.num_nodes)
        net.load_state_dict(weights)
        return net

    losses = []
    for device in (CPU, torch.device("cuda")):
        inputs, y = make_inputs(data, name, config, device), torch.from_numpy(data.y).to(device)
        losses.append([epoch.val_loss for epoch in train(lambda _: build(), inputs, y, split, config).history])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3, abs=1e-4)


@every_model
def test_settings_survive_being_written_and_read(name):
    config = make_config(name, lr=0.5, layers=3)
    assert config != make_config(name)
    assert make_config(name, **config.to_dict()) == config
    parsed = {key: config.parse(key, str(value)) for key, value in config.to_dict().items()}
    assert make_config(name, **parsed) == config


def test_settings_of_earlier_versions_are_ignored_unless_they_were_changed():
    assert make_config("asgat-cheb", damping=False, steps=30, hidden=3) == make_config("asgat-cheb", hidden=3)
    with pytest.raises(AsgatError, match="damping is no longer a setting"):
        make_config("asgat-cheb", damping=True)
    with pytest.raises(AsgatError, match="gcn has no setting 'damping'"):
        make_config("gcn", damping=False)


@pytest.mark.parametrize(("name", "key"), FIXED)
def test_what_a_name_fixes_cannot_be_changed(name, key):
    fixed = MODELS[name].fixed[key]
    assert getattr(make_config(name), key) == fixed
    assert getattr(make_config(name, **{key: fixed}), key) == fixed
    other = not fixed if isinstance(fixed, bool) else OTHER[key][fixed]
    with pytest.raises(AsgatError, match=f"{name} fixes {key} = {fixed}; it cannot be set to .?{other}"):
        make_config(name, **{key: other})


def test_the_paper_s_models_have_no_options():
    assert {name for name, _ in FIXED} == {"asgat-cheb", "asgat-exact", "asgat-arma", "asgat-heat", "asgat-linear"}
    for option in OPTIONS:
        assert all((option, False) in MODELS[name].fixed.items() for name, _ in FIXED)
        assert getattr(make_config("asgat-plus", **{option: True}), option) is True
        assert getattr(make_config("asgat-plus"), option) is (option == "root")


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
    ("name", "kind"),
    [
        ("asgat-cheb", ASGAT),
        ("asgat-plus", ASGAT),
        ("mlp", MLP),
        ("gcn", GCN),
        ("chebnet", ChebNet),
        ("armanet", ARMANet),
        ("gat", GAT),
        ("sage", SAGE),
    ],
)
def test_settings_reach_the_model(name, kind):
    net: Any = model_spec(name).build(make_config(name, layers=3, hidden=7), 4, 2)
    assert type(net) is kind
    assert len(net.layers) == 3


@pytest.mark.parametrize(
    ("name", "settings", "read"),
    [
        ("sgc", {"steps": 5, "dropout": 0.25}, lambda net: (net.conv.K, net.dropout)),
        ("chebnet", {"order": 4}, lambda net: (len(net.layers[0].lins) - 1,)),
        (
            "armanet",
            {"stacks": 3, "depth": 4, "skip_dropout": 0.25},
            lambda net: (net.layers[0].num_stacks, net.layers[0].num_layers, net.layers[0].dropout),
        ),
        (
            "gat",
            {"heads": 3, "out_heads": 2, "attention_dropout": 0.25},
            lambda net: (net.layers[0].heads, net.layers[1].heads, net.layers[0].dropout),
        ),
        ("appnp", {"steps": 3, "alpha": 0.25}, lambda net: (net.steps, net.alpha)),
        (
            "gpr-gnn",
            {"steps": 3, "alpha": 0.25, "propagation_dropout": 0.75},
            lambda net: (len(net.gamma) - 1, net.alpha, net.propagation_dropout),
        ),
        ("linkx", {"layers": 3, "hidden": 7}, lambda net: (len(net.final_mlp.lins), net.cat_lin1.in_features)),
    ],
)
def test_a_baseline_s_own_settings_reach_it(name, settings, read):
    spec, config = model_spec(name), make_config(name, **settings)
    assert read(spec.make(config, 4, 2, 14)) == tuple(settings.values())


def test_what_the_baselines_are_given():
    """The graph as one matrix, so that nothing in a training step has to look at edges."""
    assert model_spec("mlp").prepare(GRAPH, TrainConfig(), CPU) == ()
    kinds: dict[str, Any] = {"gcn": GCN, "chebnet": ChebNet, "sage": SAGE, "linkx": LINKX}
    for name, kind in kinds.items():
        (matrix,) = model_spec(name).prepare(GRAPH, make_config(name), CPU)
        torch.testing.assert_close(matrix.to_dense(), torch.from_numpy(kind.matrix(GRAPH).toarray()).float())


def test_weights_that_belong_to_nodes_ask_for_their_number():
    assert [name for name, spec in MODELS.items() if spec.belongs_to_graph(make_config(name))] == ["linkx"]
    assert model_spec("asgat-plus").belongs_to_graph(make_config("asgat-plus", adjacency=True))
    net: Any = model_spec("linkx").make(make_config("linkx"), 4, 2, 9)
    assert net.edge_lin.weight.shape[0] == 9


def test_every_module_of_baselines_is_registered():
    import asgat.nn.baselines as baselines

    assert {name.lower() for name in baselines.__all__} <= {name.replace("-", "") for name in MODELS}
