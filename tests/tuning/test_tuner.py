import json
import multiprocessing
import os
import sqlite3
from typing import Any

import pytest

pytest.importorskip("optuna")
from asgat.errors import AsgatError
from asgat.tuning.evaluation import TrialScore
from asgat.tuning.space import Range, SearchSpace, Space
from asgat.tuning.storage import file_url, open_storage, optuna
from asgat.tuning.tuner import Tuner

SPACE: Space = {
    "lr": Range(1e-3, 0.1, log=True),
    "dropout": Range(0.0, 0.8),
    "heads": Range(1, 8),
    "elu": ("every", "none"),
}
START = {"lr": 0.05, "dropout": 0.5, "heads": 8, "elu": "none"}
SEARCH = SearchSpace(SPACE, {"epochs": 7}, [START])
FACTS = {"dataset": "tiny", "seed": 0}


def evaluate(config):
    """Best at four heads and little dropout."""
    value = 0.9 - 0.05 * abs(config.heads - 4) - 0.1 * config.dropout
    return TrialScore(value, 0.01, 0.5, 0.6, 7.0, 0, 0, 0.1)


def interrupt(config):
    raise KeyboardInterrupt


def tuner(url="sqlite://", **options):
    return Tuner(str(url), "study", "asgat-plus", **{"facts": FACTS, "search": SEARCH, **options})


def states(worker):
    return [trial.state.name for trial in worker.study.trials]


def fork(target, wait=True):
    process = multiprocessing.get_context("fork").Process(target=target)
    process.start()
    if wait:
        process.join(100)
    return process


@pytest.fixture
def url(tmp_path):
    return file_url(tmp_path / "a.db")


def test_known_settings_come_first_and_the_best_is_found():
    worker = tuner()
    reported: list[Any] = []
    worker.run(evaluate, 25, on_trial=reported.append)
    rows = worker.rows()
    assert reported == rows
    assert [row["trial"] for row in rows] == list(range(25))
    assert rows[0]["settings"] == {"epochs": 7, **START}
    assert worker.best() == max(rows, key=lambda row: row["value"])
    assert worker.best()["settings"]["heads"] in (3, 4, 5)
    assert all(row["std"] == 0.01 for row in rows)


def test_a_search_that_was_stopped_ends_with_the_trials_of_one_that_was_not(url, tmp_path):
    whole = tuner(seed=1)
    whole.run(evaluate, 13)
    with pytest.raises(KeyboardInterrupt):
        tuner(url, seed=1).run(interrupt, 13)
    tuner(url, seed=1).run(evaluate, 4)
    killed = fork(lambda: tuner(url, seed=1).run(lambda config: os._exit(9), 13))
    assert killed.exitcode == 9
    with sqlite3.connect(tmp_path / "a.db") as database:  # as if it had been killed while it drew the settings
        database.execute("DELETE FROM trial_params WHERE trial_id = 5 AND param_name IN ('heads', 'elu')")
    again = tuner(url, seed=1)
    assert states(again) == ["COMPLETE"] * 4 + ["RUNNING"]
    assert len(again.study.trials[4].params) == 2
    again.release()
    again.run(evaluate, 12)
    again.run(evaluate, 13)
    assert again.rows() == whole.rows()


def test_another_seed_makes_another_search():
    one, other = tuner(seed=1), tuner(seed=2)
    one.run(evaluate, 3)
    other.run(evaluate, 3)
    assert one.rows()[0] == other.rows()[0]
    assert one.rows()[1:] != other.rows()[1:]


def test_an_interrupted_trial_returns_to_the_queue(url):
    worker = tuner(url)
    with pytest.raises(KeyboardInterrupt):
        worker.run(interrupt, 4)
    assert states(worker) == ["WAITING"]
    again = tuner(url)
    again.run(evaluate, 1)
    assert [row["trial"] for row in again.rows()] == [0]
    assert again.rows()[0]["settings"] == {"epochs": 7, **START}


def test_another_search_under_the_same_name_is_refused(url):
    tuner(url)
    with pytest.raises(
        AsgatError, match=r"The study study was made with other settings \(seed\); choose another --out"
    ):
        tuner(url, facts={**FACTS, "seed": 1})
    with pytest.raises(AsgatError, match=r"other settings \(held\)"):
        tuner(url, search=SearchSpace(SPACE, {"epochs": 8}, []))
    with pytest.raises(AsgatError, match=r"other settings \(space\)"):
        tuner(url, search=SearchSpace({**SPACE, "elu": ("last", "none")}, {"epochs": 7}, []))


def test_a_study_of_another_program_is_refused(url):
    study = optuna.create_study(storage=open_storage(url), study_name="study", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("lr", 0.0, 1.0), n_trials=1)
    with pytest.raises(
        AsgatError, match=r"The study study was made with other settings \(dataset, held, seed, space\)"
    ):
        tuner(url)


def test_no_trial_is_started_after_the_time_is_over():
    worker = tuner()
    worker.run(evaluate, 100, seconds=0.0)
    assert worker.rows() == []
    with pytest.raises(AsgatError, match="No trial has been finished"):
        worker.best()


def test_settings_that_cannot_be_trained_score_zero_and_have_an_error():
    def refuse(config):
        raise AsgatError("too large")

    worker = tuner()
    worker.run(refuse, 3)
    assert [(row["value"], row["error"]) for row in worker.rows()] == [(0.0, "too large")] * 3
    with pytest.raises(AsgatError, match="No trial could be trained: too large"):
        worker.best()


def test_processes_that_start_at_once_share_a_study(url):
    barrier = multiprocessing.get_context("fork").Barrier(3)
    processes = [fork(lambda: (barrier.wait(), tuner(url).run(evaluate, 10)), wait=False) for _ in range(3)]
    for process in processes:
        process.join(100)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    rows = tuner(url).rows()
    assert 10 <= len(rows) <= 12, "each may be training the last one"
    assert len({json.dumps(row["settings"]) for row in rows}) == len(rows), "each draws its own"
    assert sum(row["settings"] == {"epochs": 7, **START} for row in rows) == 1, "known settings are tried once"


def test_a_trial_of_a_process_that_was_killed_is_passed_over_by_the_others(url):
    tuner(url).study.ask()
    worker = tuner(url)
    worker.run(evaluate, 2)
    assert states(worker) == ["RUNNING", "COMPLETE", "COMPLETE"]
    assert [row["trial"] for row in worker.rows()] == [1, 2]
