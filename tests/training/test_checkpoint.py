"""Runs that are stopped at any epoch and resumed end with the numbers of undisturbed runs, to the last bit."""

import json
import os
import signal
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file
from tests.training.small import assert_same, jobs, make_task

from asgat.errors import AsgatError
from asgat.training.checkpoint import Checkpointer, decode, encode
from asgat.training.loop import train_jobs
from asgat.training.program import Program
from asgat.training.run_files import UNFINISHED
from asgat.training.run_state import SCORES, DivergedError, Job, Run

FRESH = r"unfinished\.safetensors holds no run that can go on: .*{}.*Start again with --fresh"


class Killed(Exception):
    """Like a kill, it leaves nothing in order."""


class Deadly(Checkpointer):
    """Saves after every epoch, and dies after some of them."""

    def __init__(self, folder, lives, **options):
        super().__init__(folder, seconds=0.0, **options)
        self.lives = lives

    def save(self, runs):
        super().save(runs)
        self.lives -= 1
        if not self.lives:
            raise Killed


def train(model, chosen, dtype=torch.float32, **options):
    """The results of jobs by their run."""
    task = make_task(model, chosen[0].config, dtype)
    return {chosen[i].run: outcome for i, outcome in train_jobs(task, chosen, **options)}


def kill(model, chosen, folder, epochs, **options):
    """Trains until some epochs are done and saved."""
    with pytest.raises(Killed):
        train(model, chosen, checkpointer=Deadly(folder, epochs), **options)


def train_in_pieces(model, chosen, folder, dtype=torch.float32, seed=0):
    """Trains with a kill of some kind every few epochs."""
    task, rng = make_task(model, chosen[0].config, dtype), np.random.default_rng(seed)
    done: dict[int, Any] = {}
    for kills in count():
        missing = [job for job in chosen if job.run not in done]
        torch.manual_seed(kills)  # what the process did before has no influence
        way, lives = ("save", "progress", "asked")[kills % 3], int(rng.integers(1, 4))
        checkpointer = Deadly(folder, lives) if way == "save" else Checkpointer(folder, seconds=0.0)
        left = [lives]

        def progress(job, epoch, way=way, checkpointer=checkpointer, left=left):
            left[0] -= 1
            if left[0] < 0 and way == "progress":
                raise Killed
            checkpointer.asked = left[0] < 0 and way == "asked"

        try:
            for position, outcome in train_jobs(task, missing, progress, checkpointer):
                done[missing[position].run] = outcome
            return done, kills
        except (Killed, KeyboardInterrupt):
            continue
    raise AssertionError


def assert_same_results(found, expected):
    assert found.keys() == expected.keys()
    for run, outcome in expected.items():
        if isinstance(outcome, DivergedError):
            assert str(found[run]) == str(outcome)
        else:
            assert_same(found[run], outcome)


TABLE = {"form": "table", "candidates": 8, "order": 4}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("model", "differences", "shared"),
    [
        ("asgat-cheb", [{}, {"lr": 0.1}, {"dropout": 0.0}, {"lr": 0.05, "weight_decay": 0.1}], {"patience": 9}),
        ("asgat-plus", [{"lr": 1e-6}, {"lr": 0.1}, {"lr": 1e-6}], {**TABLE, "max_restarts": 2, "epochs": 6}),
        ("asgat-cheb", [{}, {"lr": 1e200}, {"lr": 0.1}], {"max_restarts": 1}),
        ("asgat-plus", [{}, {"lr": 0.1}], {**TABLE, "members": 3, "max_restarts": 1}),
        ("asgat-deep", [{}, {"lr": 0.01}, {"lr": 1e-9}], {**TABLE, "heads": 2, "hidden": 6, "max_restarts": 1}),
        ("gcn", [{}, {"lr": 1e-9}], {"max_restarts": 1}),
    ],
    ids=[
        "settings",
        "restarts",
        "divergence",
        "ensembles",
        "blocks",
        "one after the other",
    ],
)
def test_several_runs_killed_at_random_epochs(model, differences, shared, dtype, tmp_path):
    chosen = jobs(model, differences, **{"epochs": 10, "patience": 4, "dropout": 0.4, **shared})
    found, kills = train_in_pieces(model, chosen, tmp_path, dtype, seed=len(differences))
    assert kills > 2
    assert_same_results(found, train(model, chosen, dtype))


def epochs_seen(chosen, checkpointer):
    seen: list[int] = []
    train("gcn", chosen, checkpointer=checkpointer, progress=lambda _, epoch: seen.append(epoch.epoch))
    return seen


def test_runs_go_on_only_as_the_same_run_on_the_same_kind_of_device(tmp_path):
    (job,) = jobs("gcn", [{}], epochs=5)
    kill("gcn", [job], tmp_path, 2)
    content = (tmp_path / UNFINISHED).read_bytes()
    cases: list[tuple[Job, dict[str, Any], int]] = [
        (job, {}, 3),
        (Job(job.split, job.seed, job.config, run=1), {}, 1),
        (Job(job.split, job.seed, job.config, member=1), {}, 1),
        (Job(job.split, 4, job.config), {}, 1),
        (job, {"device": "cuda"}, 1),
        (job, {"resumable": False}, 1),
    ]
    for chosen, options, first in cases:
        assert epochs_seen([chosen], Checkpointer(tmp_path, **options))[0] == first
        assert (tmp_path / UNFINISHED).read_bytes() == content, "nothing was due to be saved"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_runs_on_other_data_are_refused(tmp_path, device):
    chosen = jobs("gcn", [{}], epochs=5)
    with pytest.raises(Killed):
        train("gcn", chosen, checkpointer=Deadly(tmp_path, 2, data="one"))
    with pytest.raises(AsgatError, match=FRESH.format("trained on other data")):
        train("gcn", chosen, checkpointer=Checkpointer(tmp_path, device, data="two"))
    assert epochs_seen(chosen, Checkpointer(tmp_path, data="one")) == [3, 4, 5]


# -- damaged files ----------------------------------------------------------------------------------

OLD = {"position": json.dumps({"run": 0, "seed": 0, "device": "cpu", "epoch": 3})}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        b"\xff" * 40,
        b"\xff\xff\0\0\0\0\0\0" + b"[" * 100_000,
        save({"x": torch.zeros(1)}),
        save({"x": torch.zeros(1)}, {"runs": "[{}]", "device": '"cpu"', "data": '""'}),
        save({"x": torch.zeros(1)}, {"runs": "3", "device": '"cpu"', "data": '""'}),
        save({"x": torch.zeros(1)}, {"runs": '[{"run": [], "member": 0, "seed": 0}]', "device": '"cpu"', "data": '""'}),
        save({"x": torch.zeros(1)}, {"runs": "[]"}),
        save({"x": torch.zeros(1)}, {"runs": "no json"}),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_a_sentence(tmp_path, content):
    (tmp_path / UNFINISHED).write_bytes(content)
    with pytest.raises(AsgatError, match=FRESH.format("")):
        train("gcn", jobs("gcn", [{}]), checkpointer=Checkpointer(tmp_path))


@pytest.mark.parametrize("metadata", [OLD, {"state": '{"run": 3}'}])
def test_a_checkpoint_of_another_version_is_a_sentence(tmp_path, metadata):
    save_file({"model.w": torch.zeros(1)}, tmp_path / UNFINISHED, metadata)
    with pytest.raises(AsgatError, match=FRESH.format("written by another version of asgat")):
        train("gcn", jobs("gcn", [{}]), checkpointer=Checkpointer(tmp_path))


def test_a_file_that_cannot_be_read_or_removed_is_a_sentence(tmp_path):
    (tmp_path / UNFINISHED).mkdir()
    with pytest.raises(AsgatError, match=r"unfinished\.safetensors is a folder"):
        Checkpointer(tmp_path).load()
    with pytest.raises(AsgatError, match=r"unfinished\.safetensors cannot be removed"):
        Checkpointer(tmp_path).remove()


def spoil(path, values, tensors):
    """Another file in its place, with other values and other tensors of its run; None removes one."""
    with safe_open(str(path), framework="pt") as handle:
        header = handle.metadata()
        found = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    (held,) = json.loads(header["runs"])
    found |= {f"0.{name}": value for name, value in tensors.items()}
    header["runs"] = json.dumps([held | values])
    save_file({name: value for name, value in found.items() if value is not None}, path, header)


@pytest.mark.parametrize(
    ("values", "tensors", "words"),
    [
        ({"epoch": -1}, {}, "counts are not numbers"),
        ({"epoch": 9}, {}, "more epochs or attempts"),
        ({"seconds": 10**400}, {}, "counts are not numbers"),
        ({"history": None}, {}, "history is not one"),
        ({"best": 3}, {}, "scores are not numbers"),
        ({"diverged": 3}, {}, ""),
        ({"finished": True, "best": dict.fromkeys(("best_epoch", *SCORES), 1)}, {}, "another model"),
        ({"best": dict.fromkeys(("best_epoch", *SCORES), 1)}, {}, "another model"),
        ({"best": dict.fromkeys(("best_epoch", *SCORES), 1)}, {"best.x": torch.zeros(1)}, "another model"),
        ({}, {"best.x": torch.zeros(1)}, "another model"),
        ({}, {"kept.x": torch.zeros(1)}, "another model"),
        ({}, {"adam.0.step": None}, "another model"),
        ({}, {"random": torch.zeros(7, dtype=torch.uint8)}, "another model"),
    ],
    ids=str,
)
def test_a_run_with_damaged_parts_is_a_sentence(tmp_path, values, tensors, words):
    chosen = jobs("gcn", [{}], epochs=8)
    kill("gcn", chosen, tmp_path, 2)
    spoil(tmp_path / UNFINISHED, values, tensors)
    with pytest.raises(AsgatError, match=rf"{words}.*Start again with --fresh"):
        train("gcn", chosen, checkpointer=Checkpointer(tmp_path))


def test_what_is_encoded_is_decoded(tmp_path):
    (job,) = jobs("asgat-cheb", [{}])
    run = Run(job, 0.5)
    snapshot = Program(make_task("asgat-cheb", job.config), run).snapshot()
    run.update(1.0, 1.0, 0.5)
    run.best_state = {"w": torch.ones(2)}
    found = decode(encode([(run, snapshot)], "cpu", "digest"), tmp_path, "cpu", "digest")
    ((key, (values, tensors)),) = found.items()
    assert (key, values) == ((job.run, job.member, job.seed), run.to_dict())
    expected = {**snapshot, "best.w": torch.ones(2)}
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], value) for name, value in expected.items())


# -- when it is saved -------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "saved"), [({"seconds": 1000.0}, None), ({"epochs": 3}, 6), ({"seconds": 0.0}, 7)])
def test_it_is_saved_from_time_to_time(tmp_path, options, saved):
    chosen = jobs("gcn", [{}], epochs=8)
    train("gcn", chosen, checkpointer=Checkpointer(tmp_path, **options))
    assert (tmp_path / UNFINISHED).exists() == (saved is not None)
    if saved is not None:
        assert epochs_seen(chosen, Checkpointer(tmp_path))[0] == saved + 1


@pytest.mark.parametrize("model", ["gcn", "asgat-cheb"])
def test_ctrl_c_finishes_the_epoch_saves_and_stops(tmp_path, model):
    chosen = jobs(model, [{}, {}], epochs=6, dropout=0.3)
    seen = []

    def progress(job, epoch):
        seen.append((job.run, epoch.epoch))
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(model, chosen, checkpointer=Checkpointer(tmp_path), progress=progress)
    assert len(seen) == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    found = decode((tmp_path / UNFINISHED).read_bytes(), tmp_path, "cpu", "")
    assert [values["epoch"] for values, _ in found.values()] == [5]
    assert_same_results(train(model, chosen, checkpointer=Checkpointer(tmp_path)), train(model, chosen))


def test_runs_that_cannot_go_on_start_again(tmp_path):
    """A rational operator remembers what it met: its runs are not saved, and Ctrl-C stops them all the same."""
    (job,) = chosen = jobs("asgat-arma", [{}], epochs=4)
    task = make_task("asgat-arma", job.config, torch.float32)
    assert not task.resumable
    checkpointer = Checkpointer(tmp_path, seconds=0.0, resumable=False)
    checkpointer.asked = True
    with pytest.raises(KeyboardInterrupt):
        list(train_jobs(task, chosen, checkpointer=checkpointer))
    assert not (tmp_path / UNFINISHED).exists()


def test_results_that_were_handed_out_are_no_longer_saved(tmp_path):
    """A run directory has them by then."""
    chosen = jobs("asgat-plus", [{}, {"lr": 0.1}], epochs=12, patience=2, members=2)
    task = make_task("asgat-plus", chosen[0].config)
    handed: list[int] = []
    saved: list[set[tuple[int, int]]] = []

    class Watched(Checkpointer):
        def save(self, runs):
            saved.append({(run.job.run, run.job.member) for run, _ in runs})
            assert not {run for run, _ in saved[-1]} & set(handed)
            super().save(runs)

    for position, _ in train_jobs(task, chosen, checkpointer=Watched(tmp_path, seconds=0.0)):
        handed.append(chosen[position].run)
    assert saved[0] == {(0, 0)}
    assert {(0, 0), (0, 1)} in saved, "a network of an ensemble waits for the others"
    assert {(1, 0)} in saved
