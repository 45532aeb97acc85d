import dataclasses
import json
import signal
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.torch import save
from tests.distributed.ranks import finish, free_port, losses, pool, start, train, train_in_pool

from asgat.data import load_dataset
from asgat.data.dataset import Split
from asgat.data.synthetic import contextual_sbm
from asgat.disk.converter import write_graph
from asgat.disk.disk_graph import OnDiskGraph
from asgat.distributed.process_group import Group, ReportedByRankZeroError
from asgat.distributed.shard import InMemory
from asgat.distributed.trainer import RankCheckpointer, run_distributed, scores_from_counts
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.nn.registry import make_config
from asgat.training.checkpoint import decode
from asgat.training.loop import train as train_alone
from asgat.training.metrics import macro_f1, micro_f1
from asgat.training.run_directory import load_model
from asgat.training.run_files import UNFINISHED
from asgat.training.runner import Callbacks, make_task, run

PLAIN = dict(dropout=0.0, epochs=6, patience=50, form="table", order=4, heads=2, hidden=4, k=3, candidates=6)
SET = [part for key, value in PLAIN.items() for part in ("--set", f"{key}={value}")]
CPU = torch.device("cpu")


@given(hnp.arrays(np.int64, (3, 3), elements=st.integers(0, 9)).filter(lambda counts: counts.sum() > 0))
def test_scores_from_counts_are_those_from_labels(counts):
    pairs = [(t, p) for t in range(3) for p in range(3) for _ in range(counts[t, p])]
    truth, prediction = np.array(pairs).T
    assert scores_from_counts(counts.astype(float)) == pytest.approx(
        (micro_f1(truth, prediction), macro_f1(truth, prediction))
    )


@pytest.fixture(scope="module")
def data():
    return contextual_sbm(num_nodes=150, num_features=5, signal=0.5, seed=3)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """The data set as a graph on disk, in its own order, with one split."""
    part = np.zeros(data.num_nodes, dtype=np.uint8)
    for number, nodes in enumerate(data.splits[0].parts().values(), start=1):
        part[nodes] = number
    source, target = data.graph.edge_index()
    out = tmp_path_factory.mktemp("graph") / "blocks"
    write_graph(out, [(source, target, None)], data.x, data.y, part, order="none")
    return out


@pytest.fixture(scope="module")
def alone(folder, tmp_path_factory):
    """The result and the losses of a single process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    config = make_config("asgat-cheb", **PLAIN)
    result = run(OnDiskGraph(folder).to_dataset(), "asgat-cheb", config, [0], 0, "cpu", out)
    return result, losses(out)


def near(found, truth):
    return np.abs(np.array(found) - np.array(truth)).max()


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_take_the_steps_of_a_single_process(ranks, folder, alone, tmp_path):
    ended = train(ranks, tmp_path, str(folder), "--splits", "0", *SET)
    assert [code for code, _, _ in ended] == [0] * ranks, ended
    assert [out for _, out, _ in ended[1:]] == [""] * (ranks - 1), "one rank prints"
    result, truth = alone
    assert near(losses(tmp_path), truth) < 1e-4
    found = json.loads((tmp_path / "result.json").read_text())
    for key in ("val_score", "micro_f1", "macro_f1", "certified_share"):
        assert found["rows"][0][key] == pytest.approx(result["rows"][0][key], abs=1e-4)
    assert found["max_bound"] == pytest.approx(result["max_bound"], rel=1e-3)
    parts = found["rows"][0]["ranks"]
    assert sum(part["nodes"] for part in parts) == 150
    assert not (tmp_path / UNFINISHED).exists()
    assert load_model(tmp_path)[1] == "asgat-cheb"


@pytest.fixture
def group(monkeypatch):
    """A job of one rank, in this process."""
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))
    joined = Group.join()
    yield joined
    joined.close()


def history(result):
    return [(row["train_loss"], row["val_loss"], row["val_score"]) for row in result["history"]]


def test_one_rank_is_a_single_process_in_double_precision_too(group, data, alone):
    config = make_config("asgat-cheb", **PLAIN)
    source = InMemory(data, config)
    found = run_distributed(source, "asgat-cheb", config, group, [0])
    assert near([row[:2] for row in history(found)], alone[1]) < 1e-4
    double = run_distributed(source, "asgat-cheb", config, group, [0], dtype=torch.float64)
    assert near(history(double), history(found)) < 1e-4


class StoppedError(Exception):
    pass


def stop_at(number, last):
    def progress(i, epoch):
        if (i, epoch.epoch) == (number, last):
            raise StoppedError

    return Callbacks(progress=progress)


def saved_epoch(folder, data):
    """The run in the folder's checkpoint and its epoch."""
    file = folder / UNFINISHED
    (((number, _, _), (values, _)),) = decode(file.read_bytes(), file, "cpu", data).items()
    return number, values["epoch"]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_run_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(group, data, tmp_path, dropout):
    config = make_config("asgat-cheb", **{**PLAIN, "epochs": 12, "dropout": dropout})
    source = InMemory(data, config)
    whole = run_distributed(source, "asgat-cheb", config, group, [0, 1, 0], out=tmp_path / "whole")
    assert whole["runs"] == [0, 1]
    arguments = source, "asgat-cheb", config, group, [0, 1], 0, tmp_path / "run"
    with pytest.raises(StoppedError):
        run_distributed(*arguments, callbacks=stop_at(1, 8), every=5)
    number, epoch = saved_epoch(tmp_path / "run", whole["data"])
    assert (number, 8 - epoch in range(1, 6)) == (1, True)
    said: list[str] = []
    again = run_distributed(*arguments, say=said.append, every=5)
    assert said == [f"Run 1 goes on after epoch {epoch}, from its checkpoint."]
    assert history(again) == history(whole)
    for key in ("micro_f1", "macro_f1", "val_micro_f1", "epochs"):
        assert again[key] == whole[key]
    (tmp_path / "run" / UNFINISHED).write_bytes(b"left by a process killed after its last result")
    done = run_distributed(*arguments)
    assert done["rows"] == again["rows"]
    assert not (tmp_path / "run" / UNFINISHED).exists()
    load_model(tmp_path / "run")


def test_a_single_process_goes_on_from_the_checkpoint_of_ranks_and_ranks_from_its(group, data, tmp_path, monkeypatch):
    """Without dropout, whose random numbers are drawn in another way, up to rounding."""
    config = make_config("asgat-cheb", **{**PLAIN, "epochs": 12})
    whole = run(data, "asgat-cheb", config, [0])
    source = InMemory(data, config)
    with pytest.raises(StoppedError):
        run_distributed(source, "asgat-cheb", config, group, [0], 0, tmp_path, callbacks=stop_at(0, 8), every=5)
    seen: list[int] = []
    callbacks = Callbacks(progress=lambda i, epoch: seen.append(epoch.epoch))
    found = run(data, "asgat-cheb", config, [0], out=tmp_path, callbacks=callbacks)
    assert seen[0] == 6
    assert found["rows"][0]["val_loss"] == pytest.approx(whole["rows"][0]["val_loss"], abs=1e-4)
    monkeypatch.setattr("asgat.training.checkpoint.SECONDS", 0.0)
    with pytest.raises(StoppedError):
        run(data, "asgat-cheb", config, [0], out=tmp_path, fresh=True, callbacks=stop_at(0, 8))
    said: list[str] = []
    found = run_distributed(source, "asgat-cheb", config, group, [0], out=tmp_path, say=said.append)
    assert said == ["Run 0 goes on after epoch 7, from its checkpoint."]
    assert found["rows"][0]["val_loss"] == pytest.approx(whole["rows"][0]["val_loss"], abs=1e-4)


def test_data_that_changed_since_is_refused(group, data, folder, tmp_path):
    config = make_config("asgat-cheb", **{**PLAIN, "epochs": 12})
    with pytest.raises(StoppedError):
        run_distributed(InMemory(data, config), "asgat-cheb", config, group, [0], 0, tmp_path, callbacks=stop_at(0, 8))
    changed = dataclasses.replace(data, y=1 - data.y)
    with pytest.raises(AsgatError, match=r"other data: graph, features, labels or splits have changed.*--fresh"):
        run_distributed(InMemory(changed, config), "asgat-cheb", config, group, [0], out=tmp_path)
    file = tmp_path / UNFINISHED
    with pytest.raises(AsgatError, match=r"trained on other data.*--fresh"):
        decode(file.read_bytes(), file, "cpu", InMemory(changed, config).digest())
    assert OnDiskGraph(folder).digest() == InMemory(OnDiskGraph(folder).to_dataset(), config).digest()


@pytest.mark.parametrize("content", [b"", b"12345678{}", save({"x": torch.zeros(1)}, {"state": '{"run": 3}'})])
def test_a_broken_checkpoint_is_reported_by_rank_0(group, data, tmp_path, content, monkeypatch):
    config = make_config("asgat-cheb", **PLAIN)
    arguments = InMemory(data, config), "asgat-cheb", config, group, [0], 0, tmp_path
    with pytest.raises(StoppedError):
        run_distributed(*arguments, callbacks=stop_at(0, 2))
    (tmp_path / UNFINISHED).write_bytes(content)
    monkeypatch.setattr(RankCheckpointer, "load", lambda self: pytest.fail("another rank would meet it"))
    with pytest.raises(AsgatError, match="Start again with --fresh") as caught:
        run_distributed(*arguments)
    assert not isinstance(caught.value, ReportedByRankZeroError)


def test_a_run_that_diverges_is_an_error(group, data):
    config = make_config("asgat-cheb", **{**PLAIN, "lr": 1e30, "epochs": 50, "max_restarts": 0})
    with pytest.raises(AsgatError, match="diverged at epoch"):
        run_distributed(InMemory(data, config), "asgat-cheb", config, group, [0])


def test_a_split_that_is_not_there_is_named(group, data):
    config = make_config("asgat-cheb", **PLAIN)
    with pytest.raises(AsgatError, match="there is no split 10"):
        run_distributed(InMemory(data, config), "asgat-cheb", config, group, [10])


def test_a_lost_rank_ends_the_job_and_other_ranks_resume_it(folder, alone, tmp_path, group):
    """Killed in the middle of an epoch; resumed by a single rank."""
    longer = {"epochs": 300, "patience": 300}
    many = [*SET, "--set", "epochs=300", "--set", "patience=300"]
    command = ["-m", "asgat", "train", str(folder), "--splits", "0", "--distributed", "--out", str(tmp_path)]
    processes = start(2, [*command, *many])
    checkpoint = tmp_path / UNFINISHED
    deadline = time.monotonic() + 100
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    processes[1].send_signal(signal.SIGKILL)
    code, _, said = finish(processes)[0]
    assert code == 3
    assert "Rank 0: another rank was lost while epoch" in said
    assert "it goes on from the last checkpoint" in said
    assert "Traceback" not in said
    source = OnDiskGraph(folder)
    ((saved, _),) = decode(checkpoint.read_bytes(), checkpoint, "cpu", source.digest()).values()
    assert near([row[2:4] for row in saved["history"][:5]], alone[1][:5]) < 1e-4
    config = make_config("asgat-cheb", **{**PLAIN, **longer})
    said_again: list[str] = []
    result = run_distributed(source, "asgat-cheb", config, group, [0], out=tmp_path, say=said_again.append)
    assert said_again == [f"Run 0 goes on after epoch {saved['epoch']}, from its checkpoint."]
    assert result["finished"]
    assert len(result["history"]) == 300
    assert result["history"][4]["train_loss"] == saved["history"][4][2]
    assert result["history"][-1]["train_loss"] < saved["history"][0][2]


@pytest.fixture(scope="module")
def workers():
    with pool(4) as started:
        yield started


# -- restarts ---------------------------------------------------------------------------------------


def test_ranks_restart_where_a_single_process_does(workers):
    """The majority class is right on 15 validation nodes of rank 0 and 18 of rank 1, of 59.

    A model that learned nothing scores 33/59, which must not be found better than the baseline because shares were
    added up instead of counts.
    """
    assert 15 / 59 + 18 / 59 > 33 / 59
    plain = contextual_sbm(num_nodes=150, num_features=4, seed=0)
    y = np.array([*[0] * 15, *[1] * 15, *[0, 0, 1] * 15, *[0] * 18, *[1] * 11, *[0, 0, 1] * 15, 0], dtype=np.int64)
    nodes = np.arange(150)
    split = Split(np.r_[30:60, 104:134], np.r_[0:30, 75:104], np.r_[60:75, 134:150])
    assert sorted(np.concatenate(list(split.parts().values()))) == list(nodes)
    data = dataclasses.replace(plain, x=np.zeros_like(plain.x), y=y, splits=(split,))
    config = make_config("asgat-cheb", **{**PLAIN, "lr": 0.05, "max_restarts": 2})
    single = run(data, "asgat-cheb", config, [0])
    assert single["rows"][0]["val_score"] == 33 / 59
    assert single["restarts"] == 2
    for ranks in (1, 2, 3):
        found = train_in_pool(workers, ranks, data, "asgat-cheb", config)
        for key in ("restarts", "epochs", "best_epoch", "val_score", "micro_f1", "macro_f1"):
            assert found["rows"][0][key] == single["rows"][0][key], (ranks, key)


# -- the losses of a single process, whatever its settings and however the rows are divided ---------

# Without weight decay: it turns the rounding of a gradient that is zero, as of a bias, into steps of the full size.
PARITY = dict(form="table", dropout=0.0, epochs=10, patience=20, max_restarts=0, lr=0.01, weight_decay=0.0)
PARITY |= dict(order=5, heads=3, hidden=6, k=4, candidates=16, filter_hidden=(16, 16))


def losses_alone(data, model, config, dtype=torch.float32):
    task = make_task(data, model, config, CPU)
    inputs = tuple(part.to(dtype=dtype) for part in task.inputs)
    result = train_alone(lambda own: task.build(own).to(dtype), inputs, task.y, data.splits[0], config)
    return [(epoch.train_loss, epoch.val_loss) for epoch in result.history]


def losses_of_ranks(workers, ranks, data, model, config, dtype=torch.float32):
    found = train_in_pool(workers, ranks, data, model, config, dtype)["history"]
    return [(epoch["train_loss"], epoch["val_loss"]) for epoch in found]


def test_ranks_of_any_number_have_the_losses_of_a_single_process(workers):
    data = contextual_sbm(num_nodes=300, num_features=16, seed=4)
    config = make_config("asgat-cheb", **PARITY)
    truth = losses_alone(data, "asgat-cheb", config)
    assert len(truth) == 10
    for ranks in (1, 2, 3, 4):
        assert near(losses_of_ranks(workers, ranks, data, "asgat-cheb", config), truth) < 1e-4


def in_components(data, directed):
    """The same nodes in two components and with isolated ones, their edges directed or not."""
    row, col = data.graph.edges_once()[0]
    node, half = np.arange(data.num_nodes), data.num_nodes // 2
    kept = ((row < half) == (col < half)) & (row % 20 != 0) & (col % 20 != 0)
    graph = Graph.from_edges(np.stack([row, col])[:, kept], len(node), directed=directed)
    return dataclasses.replace(data, graph=graph)


@pytest.mark.parametrize("directed", [False, True])
def test_asgat_deep_on_ranks_takes_the_steps_of_a_single_process(workers, directed):
    data = in_components(contextual_sbm(num_nodes=160, num_features=16, seed=4), directed)
    config = make_config("asgat-deep", **PARITY, channels="attention+filters+mean", adjacency=True)
    truth = losses_alone(data, "asgat-deep", config)
    assert len(truth) == 10
    for ranks in (2, 4):
        assert near(losses_of_ranks(workers, ranks, data, "asgat-deep", config), truth) < 1e-4
    double = losses_alone(data, "asgat-deep", config, torch.float64)
    assert near(losses_of_ranks(workers, 2, data, "asgat-deep", config, torch.float64), double) < 1e-10


def test_ranks_may_be_left_without_nodes(workers):
    """A star: its centre, the last node, costs more than a rank's share."""
    data = contextual_sbm(num_nodes=150, num_features=4, seed=4)
    graph = Graph.from_edges(np.stack([np.arange(149), np.full(149, 149)]), 150)
    data = dataclasses.replace(data, graph=graph, x=(data.x > 2.5).astype(np.float32))
    own = dict(channels="attention+filters+mean", adjacency=True, epochs=5)
    config = make_config("asgat-deep", **{**PARITY, **own})
    found = train_in_pool(workers, 4, data, "asgat-deep", config)
    assert 0 in [part["nodes"] for part in found["rows"][0]["ranks"]]
    epochs = [(epoch["train_loss"], epoch["val_loss"]) for epoch in found["history"]]
    assert near(epochs, losses_alone(data, "asgat-deep", config)) < 1e-4


def test_a_model_without_attention_is_trained_on_ranks_too(workers):
    data = contextual_sbm(num_nodes=160, num_features=16, seed=4)
    config = make_config("asgat-deep", hidden=8, order=4, dropout=0.0, epochs=5, channels="filters+mean")
    truth = losses_alone(data, "asgat-deep", config, torch.float64)
    assert near(losses_of_ranks(workers, 3, data, "asgat-deep", config, torch.float64), truth) < 1e-10


def test_an_ensemble_on_ranks_is_that_of_a_single_process(workers, tmp_path):
    data = contextual_sbm(num_nodes=160, num_features=16, seed=4)
    own = dict(members=3, propagate=True, jump=True, balanced=True, balance=0.5, similar=2, epochs=5)
    config = make_config("asgat-plus", **{**PARITY, **own})
    whole = run(data, "asgat-plus", config, [0], out=tmp_path / "alone")["rows"][0]
    found = train_in_pool(workers, 2, data, "asgat-plus", config)["rows"][0]
    for key in ("epochs", "best_epoch", "val_score", "micro_f1", "macro_f1"):
        assert found[key] == whole[key], key
    for key in ("val_loss", "certified_share", "mean_bound"):
        assert found[key] == pytest.approx(whole[key], abs=1e-4), key


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", ["cora", "squirrel-directed", "50000"])
def test_asgat_deep_on_ranks_takes_the_steps_of_a_single_process_on_large_graphs(workers, name):
    own = {**PARITY, "lr": 2e-3, "hidden": 16, "heads": 4, "order": 6, "channels": "attention+filters+mean"}
    made = contextual_sbm(num_nodes=50_000, mean_degree=10.0, num_features=16, seed=0) if name.isdecimal() else None
    data, config = made or load_dataset(name), make_config("asgat-deep", **own)
    truth = losses_alone(data, "asgat-deep", config)
    for ranks in (2, 4):
        assert near(losses_of_ranks(workers, ranks, data, "asgat-deep", config), truth) < 1e-4


@st.composite
def trained_in_parts(draw):
    """A graph, a model and settings of every kind that reaches a weight."""
    plus = draw(st.booleans())
    own: dict[str, Any] = dict(
        layers=draw(st.integers(1, 3)),
        out_heads=draw(st.integers(1, 2)),
        k=draw(st.integers(1, 6)),
        elu=draw(st.sampled_from(["every", "hidden", "last", "none"])),
        storage=draw(st.sampled_from(["float32", "float16"])),
    )
    if plus:
        own |= {name: draw(st.booleans()) for name in ("root", "mix", "jump", "propagate", "balanced", "adjacency")}
        own["similar"] = draw(st.integers(0, 2))
        own["filter"] = draw(st.sampled_from(["mlp", "heat", "polynomial"]))
        own["order"] = 3 if own["filter"] == "polynomial" else 5  # of higher orders it has none but rounding
    own["filter_activation"] = draw(st.sampled_from(["none", "relu", "tanh"]))
    model = "asgat-plus" if plus else draw(st.sampled_from(["asgat-cheb", "asgat-linear"]))
    if model == "asgat-linear":
        own["layers"] = max(2, own["layers"])
    data = contextual_sbm(num_nodes=draw(st.integers(40, 120)), num_features=8, seed=draw(st.integers(0, 99)))
    if plus and not own["similar"]:
        data = in_components(data, directed=draw(st.booleans()))
    return data, model, make_config(model, **{**PARITY, **own})


@given(trained_in_parts(), st.integers(2, 4))
@settings(max_examples=8, deadline=None)
def test_every_weight_there_is_takes_the_steps_of_a_single_process(workers, job, ranks):
    """In double precision, in which rounding does not yet decide what is attended to."""
    data, model, config = job
    truth = losses_alone(data, model, config, torch.float64)
    assert near(losses_of_ranks(workers, ranks, data, model, config, torch.float64), truth) < 1e-8
