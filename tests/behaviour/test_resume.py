"""A command that was killed and started again comes to what it comes to undisturbed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.behaviour.made_graph import write_graph
from tests.behaviour.nets import files_of, numbers, run_command

LONG = 240.0  # seconds; a machine may be busy


def kill(words, ready):
    """Starts a command and kills it as soon as it is ready, which must be before it ends."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "asgat", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as process:
        deadline = time.monotonic() + LONG
        while not ready() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill()
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors


def finished_runs(folder):
    """How many runs a run directory has the scores of."""
    file = folder / "result.json"
    return len(json.loads(file.read_bytes())["micro_f1"]["per_run"]) if file.exists() else 0


def test_train_goes_on_with_the_runs_that_are_missing(tmp_path):
    words = [
        "train",
        "csbm",
        "--model",
        "mlp",
        "--splits",
        "0-9",
        "--set",
        "patience=150",
        "--threads",
        "1",
        "--device",
        "cpu",
    ]
    alone = numbers(tmp_path, *words, "--out", tmp_path / "alone")
    kill([*words, "--out", tmp_path / "run"], lambda: finished_runs(tmp_path / "run"))
    assert 1 <= finished_runs(tmp_path / "run") < 10
    resumed = numbers(tmp_path, *words, "--out", tmp_path / "run")
    for score in ("micro_f1", "macro_f1"):
        assert resumed[score]["per_run"] == alone[score]["per_run"]
    again = numbers(tmp_path, *words, "--out", tmp_path / "run")
    assert again == resumed, "what is finished is not trained again, or its time would differ"


def fit_words(folder, epochs):
    settings = [word for key in ("epochs", "patience") for word in ("--set", f"{key}={epochs}")]
    return ["fit", *files_of(folder), "--model", "asgat-plus", *settings, "--threads", "1", "--device", "cpu"]


def check_fit(folder, words, ready):
    """Test scores and predictions of a fit that was killed when it was ready, and of one that was not."""
    found = []
    for run in ("alone", "run"):
        if run == "run":
            kill([*words, "--out", folder / "run"], ready)
        scores = numbers(folder, *words, "--out", folder / run)["test"]["scores"]
        run_command("predict", folder / run, "--out", folder / "predictions.csv")
        found.append((scores, (folder / "predictions.csv").read_bytes()))
    assert found[0] == found[1]


def test_fit_starts_again(tmp_path):
    write_graph(tmp_path, nodes=240)
    run = tmp_path / "run"
    check_fit(tmp_path, fit_words(tmp_path, 60), lambda: run.is_dir() and any(run.iterdir()))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fit_goes_on_from_the_epoch_it_saved(tmp_path):
    write_graph(tmp_path)
    run = tmp_path / "run"
    seen: dict[str, float] = {}

    def saved():
        """A file came that was not there in the first seconds."""
        for path in run.glob("[!.]*") if run.is_dir() else ():
            seen.setdefault(path.name, time.monotonic())
        return bool(seen) and max(seen.values()) - min(seen.values()) > 10

    check_fit(tmp_path, fit_words(tmp_path, 6000), saved)
