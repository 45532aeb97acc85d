"""A disk that is full, a place that cannot be written, Ctrl-C: one sentence, nothing lost."""

import errno
import os
import signal
import time
from pathlib import Path

import pytest
from tests.kill.campaign import PROBLEMS, finish, numbers_of_run, start, unreadable, wait_for

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.training.runner import run

CONFIG = make_config("mlp", epochs=3, patience=9, max_restarts=0, hidden=2)


class Kill(BaseException):
    """The end of a process, as far as one process can play it."""


def failing(monkeypatch, at, error):
    """From the given one on every step of writing a file fails; returns how often that was asked for."""
    calls = []

    def wrap(name):
        original = getattr(os, name)

        def wrapped(*arguments, **options):
            calls.append(name)
            if len(calls) > at:
                raise error
            return original(*arguments, **options)

        monkeypatch.setattr(os, name, wrapped)

    for name in ("fsync", "replace"):
        wrap(name)
    return calls


def train(folder):
    return run(load_dataset("karate"), "mlp", CONFIG, [0, 1], out=folder)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), Kill()], ids=["full", "killed"])
def test_a_failure_at_every_single_write(tmp_path, monkeypatch, error):
    monkeypatch.setattr("asgat.training.checkpoint.SECONDS", 0.0)
    with monkeypatch.context() as patch:
        calls = failing(patch, 10**9, error)
        train(tmp_path / "counted")
        count = len(calls)
    assert count >= 20  # fsync and replace of settings, checkpoints, metrics, models and results
    whole = numbers_of_run(tmp_path / "counted")
    for at in range(count):
        folder = tmp_path / str(at)
        with monkeypatch.context() as patch:
            failing(patch, at, error)
            with pytest.raises((AsgatError, Kill)) as caught:
                train(folder)
        if isinstance(error, OSError):
            assert str(caught.value).endswith("No space left on device. Free some space and run it again.")
        assert unreadable(folder) == []
        train(folder)
        assert numbers_of_run(folder) == whole, at
        assert [path.name for path in folder.glob(".*")] == [".lock"], "nothing half-written is left"


def test_a_full_disk_as_a_process_meets_it(tmp_path):
    problem = PROBLEMS["train"]
    process = start(problem.command, tmp_path, largest=3000)  # enough for the settings, not for the weights
    finish(process)
    log = (tmp_path / "log.txt").read_text()
    assert process.exitcode == 2, log
    assert "cannot be written: File too large. Free some space and run it again." in " ".join(log.split())
    assert "Traceback" not in log
    assert unreadable(tmp_path) == []
    process = start(problem.command, tmp_path)
    finish(process)
    assert process.exitcode == 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc, which nobody can write")
def test_a_place_that_cannot_be_written(tmp_path):
    process = start("train karate --model mlp --out /proc/run", tmp_path)
    finish(process)
    log = (tmp_path / "log.txt").read_text()
    assert process.exitcode == 2, log
    assert "cannot be written" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c(tmp_path, presses):
    problem = PROBLEMS["train"]
    command = problem.command.replace("epochs=25", "epochs=80").replace("--splits 0-2", "--splits 0")
    process = start(command, tmp_path)
    wait_for(tmp_path / "run/unfinished.safetensors", process)
    for _ in range(presses):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.001)
    finish(process)
    log = (tmp_path / "log.txt").read_text()
    assert process.exitcode == 130, log
    assert "run the same command again to resume" in " ".join(log.split())
    assert "Traceback" not in log
    assert unreadable(tmp_path) == []
    if presses == 1:
        assert "the epoch is finished and saved first" in log
        assert (tmp_path / "run/unfinished.safetensors").exists()
    process = start(command, tmp_path)
    finish(process)
    assert process.exitcode == 0
    (tmp_path / "alone").mkdir()
    process = start(command, tmp_path / "alone")
    finish(process)
    assert numbers_of_run(tmp_path / "run") == numbers_of_run(tmp_path / "alone/run")


def test_a_training_that_diverges_names_the_epoch_and_the_remedy(tmp_path):
    process = start("train karate --model mlp --splits 0 --set lr=1e30 --set epochs=20 --set max_restarts=1", tmp_path)
    finish(process)
    log = " ".join((tmp_path / "log.txt").read_text().split())
    assert process.exitcode == 2, log
    assert "Training diverged at epoch" in log
    assert "Set a lower learning rate (lr is 1e+30)" in log
