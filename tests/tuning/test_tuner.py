import json
import multiprocessing
import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from asgat.errors import AsgatError
from asgat.tuning.evaluation import TrialScore
from asgat.tuning.space import Range, SearchSpace, Space
from asgat.tuning.storage import Journal, open_storage, optuna
from asgat.tuning.tuner import Tuner, next_position, position

pytest.importorskip("optuna")
SPACE: Space = {
    "lr": Range(1e-3, 0.1, log=True),
    "dropout": Range(0.0, 0.8),
    "heads": Range(1, 8),
    "elu": ("every", "none"),
}
SEARCH = SearchSpace(SPACE, {"epochs": 7}, [{"lr": 0.05, "dropout": 0.5, "heads": 8, "elu": "none"}])
FACTS = {"dataset": "tiny", "seed": 0}


def score(config):
    """Best at four heads and little dropout."""
    return 0.9 - 0.05 * abs(config.heads - 4) - 0.1 * config.dropout


def evaluate(configs, calls=None, seconds=0.0):
    time.sleep(seconds)
    if calls is not None:
        calls.append(configs)
    return [TrialScore(score(config), 0.01, 0.5, 0.6, 7.0, 0, 0, 0.1) for config in configs]


def tuner(place, times=(20.0, 90.0), **options):
    options = {"facts": FACTS, "search": SEARCH, **options}
    worker = Tuner(open_storage(str(place)), "study", "asgat-plus", **options)
    worker.heartbeat, worker.timeout = times
    return worker


def states(worker):
    return [trial.state.name for trial in worker.study.trials]


def test_known_settings_come_first_and_the_best_is_found(tmp_path):
    worker = tuner(tmp_path / "j")
    reported: list[Any] = []
    worker.run(evaluate, 25, on_trial=reported.append)
    rows = worker.rows()
    assert reported == rows
    assert [row["trial"] for row in rows] == list(range(25))
    assert rows[0]["settings"] == {"epochs": 7, "lr": 0.05, "dropout": 0.5, "heads": 8, "elu": "none"}
    assert worker.best() == max(rows, key=lambda row: row["value"])
    assert worker.best()["settings"]["heads"] in (3, 4, 5)
    assert all(row["std"] == 0.01 for row in rows)


def test_trials_of_a_batch_share_an_architecture_and_draw_the_rest(tmp_path):
    calls: list[Any] = []
    tuner(tmp_path / "j", batch=4).run(partial(evaluate, calls=calls), 18)
    assert sum(len(batch) for batch in calls) == 18
    assert [len(batch) for batch in calls] == [4, 4, 4, 4, 2]
    for batch in calls:
        assert len({(config.heads, config.elu) for config in batch}) == 1
        assert len({config.lr for config in batch}) == len(batch)
    assert len({batch[0].heads for batch in calls}) > 1


def test_a_queue_of_different_architectures_is_trained_separately(tmp_path):
    starts = [{"lr": 0.01, "dropout": 0.1, "heads": h, "elu": "none"} for h in (2, 3, 2)]
    calls: list[Any] = []
    tuner(tmp_path / "j", search=SearchSpace(SPACE, {}, starts)).run(partial(evaluate, calls=calls), 3)
    assert [[config.heads for config in batch] for batch in calls] == [[2], [3], [2]], "reported in the order asked"


def test_the_same_seed_makes_the_same_search_also_after_a_restart(tmp_path):
    whole, parts, other = (tuner(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    whole.run(evaluate, 12)
    parts.run(evaluate, 4)
    again = tuner(tmp_path / "b", seed=1)
    again.run(evaluate, 12)
    again.run(evaluate, 12)
    other.run(evaluate, 12)
    assert again.rows() == whole.rows()
    assert other.rows() != whole.rows()


def test_another_search_under_the_same_name_is_refused(tmp_path):
    tuner(tmp_path / "j")
    with pytest.raises(AsgatError, match=r"The study study was made with other settings \(seed\)"):
        tuner(tmp_path / "j", facts={**FACTS, "seed": 1})
    with pytest.raises(AsgatError, match=r"other settings \(held\)"):
        tuner(tmp_path / "j", search=SearchSpace(SPACE, {"epochs": 8}, []))


def test_no_trial_is_started_after_the_time_is_over(tmp_path):
    worker = tuner(tmp_path / "j")
    worker.run(evaluate, 100, seconds=0.0)
    assert worker.rows() == []
    with pytest.raises(AsgatError, match="No trial has been finished"):
        worker.best()


def test_settings_that_cannot_be_trained_score_zero_and_have_an_error(tmp_path):
    def refuse(configs):
        raise AsgatError("too large")

    worker = tuner(tmp_path / "j")
    worker.run(refuse, 3)
    assert [(row["value"], row["error"]) for row in worker.rows()] == [(0.0, "too large")] * 3
    with pytest.raises(AsgatError, match="No trial could be trained: too large"):
        worker.best()


def test_an_interrupted_batch_returns_to_the_queue(tmp_path):
    def interrupt(configs):
        raise KeyboardInterrupt

    worker = tuner(tmp_path / "j", batch=2)
    with pytest.raises(KeyboardInterrupt):
        worker.run(interrupt, 4)
    lost = [trial.params for trial in worker.study.trials[:2]]
    assert states(worker) == ["WAITING", "WAITING"]
    calls: list[Any] = []
    tuner(tmp_path / "j", batch=2).run(partial(evaluate, calls=calls), 4)
    assert [row["trial"] for row in tuner(tmp_path / "j").rows()] == [0, 1, 2, 3]
    assert [trial.params for trial in worker.study.trials[:2]] == lost
    assert sum(len(batch) for batch in calls) == 4


class Kill(BaseException):
    """Simulates the death of a worker within one process."""


def mortal(monkeypatch, life):
    """After this many writes to a journal the worker dies; returns what was written."""
    original = Journal.append_logs
    lines: list[Any] = []

    def append(self, logs):
        if len(lines) >= life:
            raise Kill
        lines.append(logs)
        original(self, logs)

    monkeypatch.setattr(Journal, "append_logs", append)
    return lines


def search(folder, **options):
    """Fourteen trials: the last ones are drawn from the results of the first ten."""
    folder.mkdir(exist_ok=True)
    worker = tuner(folder / "j", workers=folder / "workers", **options)
    worker.run(evaluate, 14)
    return worker.rows()


def test_a_search_killed_anywhere_ends_with_the_trials_of_an_uninterrupted_one(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        lines = mortal(patch, 10**9)
        whole = search(tmp_path / "whole")
    assert [row["trial"] for row in whole] == list(range(14))
    rng = random.Random(0)
    lives = [*range(4), *(rng.randrange(4, len(lines)) for _ in range(8))]
    for life in lives:
        folder = tmp_path / str(life)
        for again in (life, rng.randrange(40), rng.randrange(12)):  # and twice more after a restart
            with monkeypatch.context() as patch:
                mortal(patch, again)
                with suppress(Kill):
                    search(folder)
        assert search(folder) == whole, life


def test_released_trials_are_asked_for_in_their_order(tmp_path):
    worker = tuner(tmp_path / "j", workers=tmp_path / "workers", batch=3)
    first = worker._ask(3, 9)
    drawn = [trial.params for trial in first]
    for trial in reversed(first):
        worker._release(trial)
    assert states(worker) == ["WAITING"] * 3
    assert [trial.params for trial in worker._ask(3, 9)] == drawn


def test_a_trial_that_another_worker_finished_is_left_alone(tmp_path):
    worker = tuner(tmp_path / "j", batch=1)
    reported: list[Any] = []

    def overtaken(configs):
        tuner(tmp_path / "j").study.tell(0, 0.25)
        return evaluate(configs)

    worker.run(overtaken, 1, on_trial=reported.append)
    assert [row["value"] for row in worker.rows()] == [0.25]
    assert reported == []
    worker._release(worker.study.trials[0])
    assert states(worker) == ["COMPLETE"]


@pytest.mark.parametrize("step", ["worker", "beat"])
def test_a_trial_that_a_worker_taken_for_lost_finishes_after_all_is_passed_over(step, tmp_path, monkeypatch):
    """Another worker has just asked for it, and is about to write to it."""
    worker = tuner(tmp_path / "j")
    write = worker.storage.set_trial_user_attr

    def finished_before(trial_id, key, value):
        if key == step:
            monkeypatch.setattr(worker.storage, "set_trial_user_attr", write)
            worker.storage.set_trial_state_values(trial_id, optuna.trial.TrialState.COMPLETE, [0.5])
        write(trial_id, key, value)

    monkeypatch.setattr(worker.storage, "set_trial_user_attr", finished_before)
    worker.run(evaluate, 3)
    assert states(worker) == ["COMPLETE"] * 3


def test_surplus_trials_are_discarded_also_if_their_worker_dies(tmp_path):
    worker = tuner(tmp_path / "j", batch=1)
    worker.run(evaluate, 2)
    assert worker._ask(1, 2) == [], "two trials are finished"
    marked = worker.study.ask()
    marked.set_user_attr("surplus", True)
    worker._release(marked)
    assert states(worker) == ["COMPLETE", "COMPLETE", "FAIL", "FAIL"]
    worker.run(evaluate, 3)
    assert [row["trial"] for row in worker.rows()] == [0, 1, 2]


def study(*trials):
    """Trials by their states and attributes."""
    return [
        SimpleNamespace(number=number, state=SimpleNamespace(name=state), user_attrs=attributes)
        for number, (state, attributes) in enumerate(trials)
    ]


def test_a_retry_of_an_earlier_version_has_the_position_of_the_trial_it_repeats():
    done: tuple[str, Any] = "COMPLETE", {}
    trials = study(done, ("FAIL", {}), done, ("FAIL", {"retry_of": 1}), ("COMPLETE", {"retry_of": 3}))
    assert [position(trial, trials) for trial in trials] == [0, 1, 2, 1, 1]
    assert next_position(trials) == 3


def test_surplus_trials_have_no_position():
    trials = study(("COMPLETE", {}), ("FAIL", {"surplus": True}), ("COMPLETE", {}))
    assert position(trials[2], trials) == 1
    assert next_position(trials) == 2


def test_the_queue_comes_before_new_trials():
    trials = study(("COMPLETE", {}), ("WAITING", {}), ("COMPLETE", {}))
    assert next_position(trials) == 1


def test_no_test_value_is_anywhere_in_a_study(tmp_path):
    tuner(tmp_path / "j").run(evaluate, 3)
    text = (tmp_path / "j").read_text().replace("val_micro_f1", "")
    assert not [word for word in ("test", "micro_f1", "macro_f1", "roc_auc") if word in text]


# -- several workers ----------------------------------------------------------------------------------------------


def work(place, trials, seconds):
    tuner(place, (0.2, 60.0), batch=3).run(partial(evaluate, seconds=seconds), trials)


def start(place, trials, seconds):
    process = multiprocessing.get_context("fork").Process(target=work, args=(place, trials, seconds))
    process.start()
    return process


def check_four_workers(place):
    workers = [start(place, 24, 0.02) for _ in range(4)]
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0] * 4
    after = tuner(place)
    rows = after.rows()
    assert len(rows) == 24, "no trial is lost or repeated"
    assert states(after).count("RUNNING") == 0
    assert [row["trial"] for row in rows] == list(range(24)), "each has its own position"
    # Rounded draws near the best settings may coincide; two workers with the same draws would leave 18.
    assert len({json.dumps(row["settings"]) for row in rows}) > 18, "workers draw differently"
    assert sum(row["settings"]["lr"] == 0.05 for row in rows) == 1, "known settings are tried once"


def test_four_workers_share_a_journal_without_losing_a_trial(tmp_path):
    check_four_workers(tmp_path / "journal.log")


def test_four_workers_share_a_database_without_losing_a_trial(postgres):
    check_four_workers(postgres)


def check_killed_worker(place):
    victim = start(place, 3, 600.0)
    worker = tuner(place, (0.3, 4.0), batch=3)
    for _ in range(200):
        if [len(t.params) for t in worker.study.get_trials(deepcopy=False)] == [4, 4, 4]:
            break
        time.sleep(0.05)
    time.sleep(5.0)
    worker._release_lost()
    assert states(worker) == ["RUNNING"] * 3, "trials of live workers are not released"
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    lost = [trial.params for trial in worker.study.trials]
    others = [tuner(place, (0.3, 4.0), batch=3) for _ in range(2)]
    threads = [threading.Thread(target=w.run, args=(evaluate, 3)) for w in (worker, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert states(worker)[:3] == ["COMPLETE"] * 3
    assert set(states(worker)[3:]) <= {"FAIL"}, "surplus trials are discarded"
    assert [trial.params for trial in worker.study.trials[:3]] == lost


def test_the_trials_of_a_killed_worker_are_retried_from_a_journal(tmp_path):
    check_killed_worker(tmp_path / "journal.log")


def test_the_trials_of_a_killed_worker_are_retried_from_a_database(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE killed")
    check_killed_worker(postgres.rsplit("/", 1)[0] + "/killed")
