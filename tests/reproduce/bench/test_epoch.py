import math

import numpy as np
import pytest
import torch
from tests.reproduce.bench.conftest import load
from torch_geometric.utils import add_self_loops, remove_self_loops

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.kernels.sparse_features import SparseFeatures
from asgat.tuning.space import CHEBYSHEV
from reproduce.bench import epoch
from reproduce.bench.epoch import GAT, TABLE, bench_epoch, published_config

CPU = torch.device("cpu")
NAMES = {
    "dataset",
    "asgat_ms",
    "gat_ms",
    "gat_tuned_ms",
    "dense_ms",
    "speedup_vs_gat",
    "speedup_vs_tuned_gat",
    "candidates",
    "cap",
    "order",
    "dtype",
}


def test_rows_have_the_promised_names_and_sound_numbers(small):
    said: list[str] = []
    for name in ("karate", "csbm"):
        row = bench_epoch(load(name), published_config(name), CPU, said.append, repeats=1)
        assert row["dataset"] == name
        assert set(row) >= NAMES
        times = [row[key] for key in ("asgat_ms", "gat_ms", "gat_tuned_ms", "dense_ms")]
        assert all(math.isfinite(t) and t > 0 for t in times)
        assert row["speedup_vs_gat"] == pytest.approx(row["gat_ms"] / row["asgat_ms"])
        assert row["speedup_vs_tuned_gat"] == pytest.approx(row["gat_tuned_ms"] / row["asgat_ms"])
        config = published_config(name)
        assert [row[key] for key in ("candidates", "cap", "order", "dtype")] == [32, 256, config.order, "float32"]
    assert any("csbm" in line for line in said)


def test_beyond_a_size_the_dense_form_is_not_timed(small, monkeypatch):
    monkeypatch.setattr(epoch, "DENSE_LIMIT", 10)
    row = bench_epoch(load("karate"), published_config("karate"), CPU, print, repeats=1)
    assert row["dense_ms"] is None
    assert row["asgat_ms"] > 0


def test_medians_are_taken_over_repeats(small, monkeypatch):
    clock = {"asgat_ms": [1.0, 9.0, 2.0], "gat_ms": [40.0, 4.0, 6.0], "gat_tuned_ms": [3.0, 3.0, 8.0]}
    order = list(clock)  # in which the timers are made

    def fake(*arguments):
        return iter(clock[order.pop(0)]).__next__

    monkeypatch.setattr(epoch, "DENSE_LIMIT", 0)
    monkeypatch.setattr(epoch, "asgat_timer", fake)
    monkeypatch.setattr(epoch, "plain_timer", fake)
    row = bench_epoch(load("karate"), published_config("karate"), CPU, print, repeats=3)
    assert [row[key] for key in clock] == [2.0, 6.0, 3.0]
    assert (row["speedup_vs_gat"], row["speedup_vs_tuned_gat"]) == (3.0, 1.5)


@pytest.mark.parametrize("training", [True, False])
def test_the_tuned_gat_is_the_plain_one(training):
    """Equal weights and no dropout: the same output and gradients, from sparse features."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((20, 9)) * (rng.random((20, 9)) < 0.3)).astype(np.float32)
    edges = torch.from_numpy(rng.integers(0, 20, (2, 60)))
    config = ASGATConfig(heads=3, hidden=5, dropout=0.0)
    torch.manual_seed(0)
    plain, tuned = GAT(9, config, 4).train(training), GAT(9, config, 4, sparse=True).train(training)
    renamed = {key.replace("first.lin.", "product."): value for key, value in plain.state_dict().items()}
    tuned.load_state_dict(renamed)
    looped = add_self_loops(remove_self_loops(edges)[0], num_nodes=20)[0]  # the plain one does so in every call
    outputs = plain(torch.from_numpy(x), edges), tuned(SparseFeatures.from_dense(x), looped)
    assert outputs[0].shape == (20, 4)
    torch.testing.assert_close(outputs[1], outputs[0])
    for out in outputs:
        out.square().sum().backward()
    grads = {key.replace("first.lin.", "product."): p.grad for key, p in plain.named_parameters()}
    for key, parameter in tuned.named_parameters():
        torch.testing.assert_close(parameter.grad, grads[key], atol=1e-5, rtol=1e-4)


def test_dropout_acts_on_both():
    config = ASGATConfig(heads=1, hidden=5, dropout=0.5)
    edges, x = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.rand(3, 9) + 1.0
    for net, features in ((GAT(9, config, 4), x), (GAT(9, config, 4, sparse=True), SparseFeatures.from_dense(x))):
        assert not torch.equal(net(features, edges), net(features, edges))
        net.eval()
        assert torch.equal(net(features, edges), net(features, edges))


@pytest.mark.parametrize("name", CHEBYSHEV)
def test_published_settings_make_a_configuration_on_the_shared_table(name):
    config = published_config(name)
    values = {**CHEBYSHEV[name], **TABLE}
    assert {key: getattr(config, key) for key in values} == values
    assert config.form == "table"
    assert config.k is not None
    assert config.candidates >= config.k, "a table must hold what is kept of it"


def test_changes_come_last():
    config = published_config("cora", epochs=3, candidates=40, k=2)
    assert (config.epochs, config.candidates, config.k, config.hidden) == (3, 40, 2, 32)


def test_unknown_data_sets_are_named_with_the_nearest():
    with pytest.raises(AsgatError, match=r"No published settings for 'kora'. Did you mean 'cora'"):
        published_config("kora")
