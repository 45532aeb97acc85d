"""A run that is stopped after any epoch and taken up again is the run that was never stopped, to the last bit."""

import dataclasses
import json
import os
import signal
from functools import partial
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.nn.registry import make_config, model_spec
from asgat.training.runner import make_inputs, resumable, run
from asgat.training.trainer import train
from asgat.training.unfinished import KEPT_FIGURES, UNFINISHED, Keeper

SETTINGS = {"epochs": 12, "patience": 4, "dropout": 0.5, "hidden": 4, "max_restarts": 1}
MODELS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gat": {"heads": 2},
    "asgat-plus": {"heads": 2, "k": 4, "form": "table", "candidates": 8, "order": 4, "mix": True},
    "asgat-cheb": {"heads": 2, "k": 4, "form": "table", "candidates": 8, "order": 4, "batch_size": 17, "epochs": 5},
}


class Killed(Exception):
    """As a kill would, it leaves nothing in order."""


class Deadly(Keeper):
    """Saves after every epoch, and dies after some of them."""

    def __init__(self, folder, lives, **options):
        super().__init__(folder, 0, every=0.0, **options)
        self.lives = lives

    def save(self, *parts):
        super().save(*parts)
        self.lives -= 1
        if not self.lives:
            raise Killed


def problem(model, **changes):
    data = load_dataset("karate")
    config = make_config(model, **(SETTINGS | MODELS[model] | changes))
    device = torch.device("cpu")
    inputs = make_inputs(data, model, config, device)
    build = partial(model_spec(model).make, config, data.num_features, data.num_classes, data.num_nodes)
    y = torch.from_numpy(data.y)
    return lambda keeper=None, seed=3: train(build, inputs, y, data.splits[0], config, seed, keeper=keeper)


def timeless(result):
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return {key: value for key, value in values.items() if key not in ("seconds", "state")}


def assert_same(one, other):
    assert timeless(one) == timeless(other)
    assert one.state.keys() == other.state.keys()
    for name, value in one.state.items():
        assert torch.equal(value, other.state[name]), name


@pytest.mark.parametrize("model", MODELS)
def test_killed_after_every_single_epoch(model, tmp_path):
    fit = problem(model)
    whole = fit()
    deaths = 0
    while True:
        torch.manual_seed(deaths)  # what the process did before is no part of it
        try:
            pieces = fit(Deadly(tmp_path, 1))
            break
        except Killed:
            deaths += 1
    assert deaths >= whole.epochs
    assert_same(whole, pieces)


def test_the_best_of_earlier_attempts_is_kept(tmp_path):
    """A learning rate with which nothing is learned: every attempt is made, and the first of equals counts."""
    fit = problem("gcn", lr=1e-9)
    whole = fit()
    assert whole.restarts == 1
    keeper = Deadly(tmp_path, whole.epochs - 1)  # in the second attempt
    with pytest.raises(Killed):
        fit(keeper)
    saved = Keeper(tmp_path, 0).load(3, torch.device("cpu"))
    assert saved is not None
    assert saved.position.attempt == 1
    assert saved.position.best is not None
    assert_same(whole, fit(Keeper(tmp_path, 0)))


def test_another_run_seed_or_device_is_none_of_ours(tmp_path):
    with pytest.raises(Killed):
        problem("gcn")(Deadly(tmp_path, 2))
    cpu = torch.device("cpu")
    assert Keeper(tmp_path, 0).load(3, cpu) is not None
    assert Keeper(tmp_path, 1).load(3, cpu) is None
    assert Keeper(tmp_path, 0).load(4, cpu) is None
    assert Keeper(tmp_path, 0).load(3, torch.device("cuda:0")) is None
    assert Keeper(tmp_path, 0, resumable=False).load(3, cpu) is None


@pytest.mark.parametrize("content", [b"", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 40, b"[" * 100_000])
def test_a_file_that_is_no_run_is_a_sentence(tmp_path, content):
    (tmp_path / UNFINISHED).write_bytes(content)
    with pytest.raises(AsgatError, match=r"holds no unfinished run: .*Start anew with --fresh"):
        Keeper(tmp_path, 0).load(3, torch.device("cpu"))


def spoil(path, position=(), tensors=()):
    """Another file in its place, with other values and other tensors; None takes one away."""
    with safe_open(str(path), framework="pt") as handle:
        held = json.loads(handle.metadata()["position"]) | dict(position)
        found = {name: handle.get_tensor(name) for name in handle.keys()} | dict(tensors)  # noqa: SIM118
    kept = {name: value for name, value in found.items() if value is not None}
    save_file(kept, path, {"position": json.dumps(held)})


@pytest.mark.parametrize(
    ("position", "tensors", "words"),
    [
        ({"epoch": -1}, {}, "its counts are none"),
        ({"attempt": True}, {}, "its counts are none"),
        ({"waited": 1.5}, {}, "its counts are none"),
        ({"seconds": 10**400}, {}, "int too large"),
        ({"best_loss": "0"}, {}, "its best figures are no numbers"),
        ({"history": {}}, {}, "its history is none"),
        ({"history": [[0, 1, 0.5, 0.5]]}, {}, "its history is none"),
        ({"history": [[0, 1, 0.5, 0.5, None]]}, {}, "its history is none"),
        ({"best": {}}, {}, "'best_epoch'"),
        ({"best": dict.fromkeys(KEPT_FIGURES, "x")}, {}, "its best attempt is none"),
        ({"best": dict.fromkeys(KEPT_FIGURES, 0.5)}, {}, "another model"),
        ({"epoch": 13}, {}, "another model"),
        ({"attempt": 2}, {}, "another model"),
        ({}, {"model.": None}, "another model"),
        ({}, {"kept.x": torch.zeros(1)}, "another model"),
        ({}, {"best.x": torch.zeros(1)}, "another model"),
        ({}, {"adam.0.step": None}, "another model"),
        ({}, {"adam.0.step": torch.zeros(())}, "another model"),
        ({}, {"adam.0.exp_avg": torch.zeros(1)}, "another model"),
        ({}, {"adam.0.x": torch.zeros(1)}, "another model"),
        ({}, {"random.cpu": None}, "another model"),
        ({}, {"random.cpu": torch.zeros(7, dtype=torch.uint8)}, "another model"),
    ],
)
def test_a_run_with_strange_parts_is_a_sentence(tmp_path, position, tensors, words):
    fit = problem("gcn")
    with pytest.raises(Killed):
        fit(Deadly(tmp_path, 2))
    if "model." in tensors:
        tensors = {min(name for name in load_file(tmp_path / UNFINISHED) if name.startswith("model.")): None}
    spoil(tmp_path / UNFINISHED, position, tensors)
    with pytest.raises(AsgatError, match=rf"holds no unfinished run: .*{words}.*Start anew with --fresh"):
        fit(Keeper(tmp_path, 0))


def test_it_is_saved_now_and_then_only(tmp_path):
    problem("gcn")(Keeper(tmp_path, 0, every=1000.0))
    assert not (tmp_path / UNFINISHED).exists()


def test_ctrl_c_finishes_the_epoch_saves_and_stops(tmp_path):
    fit = problem("gcn")
    whole = fit()
    keeper = Keeper(tmp_path, 0)
    seen = []

    def progress(epoch):
        seen.append(epoch.epoch)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    data = load_dataset("karate")
    config = make_config("gcn", **SETTINGS)
    inputs = make_inputs(data, "gcn", config, torch.device("cpu"))
    build = partial(model_spec("gcn").make, config, data.num_features, data.num_classes, data.num_nodes)
    with pytest.raises(KeyboardInterrupt), keeper:
        train(build, inputs, torch.from_numpy(data.y), data.splits[0], config, 3, "micro_f1", progress, keeper)
    assert seen == [1, 2, 3]
    saved = Keeper(tmp_path, 0).load(3, torch.device("cpu"))
    assert saved is not None
    assert saved.position.epoch == 3
    assert_same(whole, fit(Keeper(tmp_path, 0)))


def test_a_form_that_remembers_starts_anew(tmp_path):
    data = load_dataset("karate")
    arma = make_config("asgat-arma", **{**SETTINGS, "heads": 2, "k": 4})
    inputs = make_inputs(data, "asgat-arma", arma, torch.device("cpu"))
    assert not resumable(inputs)
    keeper = Deadly(tmp_path, 0, resumable=False)
    keeper.asked = True
    build = partial(model_spec("asgat-arma").make, arma, data.num_features, data.num_classes, data.num_nodes)
    with pytest.raises(KeyboardInterrupt):
        train(build, inputs, torch.from_numpy(data.y), data.splits[0], arma, 3, keeper=keeper)
    assert not (tmp_path / UNFINISHED).exists()


def test_a_run_directory_keeps_it_until_the_run_is_done(tmp_path, monkeypatch):
    data, config = load_dataset("karate"), make_config("mlp", **SETTINGS)
    whole = run(data, "mlp", config, [0, 1], out=tmp_path / "whole")
    monkeypatch.setattr("asgat.training.unfinished.EVERY", 0.0)

    def progress(i, epoch):
        if (i, epoch.epoch) == (1, 5):
            raise Killed

    with pytest.raises(Killed):
        run(data, "mlp", config, [0, 1], out=tmp_path / "run", progress=progress)
    assert (tmp_path / "run" / UNFINISHED).exists()
    epochs = []
    result = run(data, "mlp", config, [0, 1], out=tmp_path / "run", progress=lambda i, e: epochs.append((i, e.epoch)))
    assert epochs[0] == (1, 5), "it went on after the epoch that was saved"
    assert not (tmp_path / "run" / UNFINISHED).exists()
    for key in ("micro_f1", "macro_f1", "val_micro_f1", "epochs"):
        assert result[key] == whole[key]
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert json.loads((tmp_path / "run/result.json").read_text())["finished"]
    (tmp_path / "run" / UNFINISHED).write_bytes(b"left by a process killed after its last result")
    assert run(data, "mlp", config, [0, 1], out=tmp_path / "run")["micro_f1"] == whole["micro_f1"]
    assert not (tmp_path / "run" / UNFINISHED).exists()
