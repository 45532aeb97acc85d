"""A search as an Optuna study that several workers may share, and that survives the death of any of them.

A trial is asked for, trained with a few others of the same architecture, and reported with its mean validation score.
While it is trained, its worker renews a time stamp and holds a file lock. A running trial whose stamp is old, or whose
worker's lock is free, has lost its worker: the first worker that notices fails it and queues its settings again.

With a single worker, a search that was killed and restarted ends with the same trials as an uninterrupted one: the
position of a trial, which its retry inherits, seeds its sampler and decides which trials it is trained with.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from asgat.config import TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import TrialScore
from asgat.tuning.heartbeat import Heartbeat, last_stamp, stamp
from asgat.tuning.space import BATCHED, Range, SearchSpace, trial_settings
from asgat.tuning.storage import import_optuna
from asgat.tuning.trial_order import RETRY_OF, SURPLUS, next_position, out_of_order, position, unqueued
from asgat.tuning.worker import Worker

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

Evaluate = Callable[[Sequence[TrainConfig]], list[TrialScore]]
OnTrial = Callable[[dict[str, Any]], None]
HEARTBEAT, TIMEOUT = 20.0, 90.0  # seconds between two stamps, and after which a stamp is old


class Tuner:
    """A worker of a study.

    Args:
        storage: where the study is kept.
        name: the study's name there.
        model: a model's name in the registry.
        search: the search space.
        facts: what identifies the study: data set, runs, seed and so on. A study of that name with other facts is
            refused.
        seed: seed of the sampler; with one worker the trials are the same every time.
        batch: number of trials of one architecture that are trained as one program.
        heartbeat: seconds between two time stamps of a running trial.
        timeout: seconds without a time stamp after which a trial counts as lost.
        workers: folder of the locks of all workers, if they share one.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,
        model: str,
        search: SearchSpace,
        facts: dict[str, Any],
        seed: int = 0,
        batch: int = 4,
        heartbeat: float = HEARTBEAT,
        timeout: float = TIMEOUT,
        workers: Path | None = None,
    ) -> None:
        self.optuna = import_optuna()
        self.storage, self.model, self.search, self.seed, self.batch = storage, model, search, seed, batch
        self.heartbeat, self.timeout, self.worker = heartbeat, timeout, Worker(workers)
        wanted = json.dumps({**facts, "held": search.fixed, "space": list(search.space)}, sort_keys=True, default=str)
        with self.worker.exclusive() as exclusive:
            try:
                self.study: Study = self.optuna.create_study(storage=storage, study_name=name, direction="maximize")
                new = True
            except self.optuna.exceptions.DuplicatedStudyError:
                self.study = self.optuna.load_study(storage=storage, study_name=name)
                new = not self._has_facts(exclusive)
            if new:  # or its creator was killed before it wrote the facts
                for start in search.starts[len(self._trials()) :]:
                    self.study.enqueue_trial(start)
                self.study.set_user_attr("facts", wanted)
        self._check_facts(wanted)
        self.study.sampler = self._sampler(0, {})

    def run(
        self, evaluate: Evaluate, trials: int, seconds: float | None = None, on_trial: OnTrial | None = None
    ) -> None:
        """Works until the study has this many finished trials, or the time is over.

        Args:
            evaluate: scores configurations that differ in lr, weight_decay and dropout only.
            trials: finished trials of the study, including those of earlier starts and of other workers.
            seconds: time after which no new trial is started.
            on_trial: called with every trial this worker finished, as a row of the log.
        """
        started = time.monotonic()
        with self.worker.alive():
            while seconds is None or time.monotonic() - started < seconds:
                with self.worker.exclusive() as exclusive:
                    self._retry_lost(exclusive)
                everything = self._trials()
                if sum(trial.state.name == "COMPLETE" for trial in everything) >= trials:
                    return
                missing = trials - sum(trial.state.name in ("COMPLETE", "RUNNING") for trial in everything)
                missing -= self._reserved(everything)
                if missing <= 0:  # other workers train the rest, and may die
                    time.sleep(min(1.0, self.timeout / 4))
                    continue
                for group in _by_architecture(self._ask(min(self.batch, missing), trials)):
                    self._train(group, evaluate, on_trial)

    def rows(self) -> list[dict[str, Any]]:
        """The finished trials in order of their position, as rows of the log."""
        everything = self._trials()
        done = [self._row(trial, everything) for trial in everything if trial.state.name == "COMPLETE"]
        return sorted(done, key=lambda row: row["trial"])

    def best(self) -> dict[str, Any]:
        """The trial with the best score; the first of equals."""
        rows = self.rows()
        if not rows:
            raise AsgatError("No trial has been finished; allow more --trials or --seconds.")
        best = max(rows, key=lambda row: (row["value"], -row["trial"]))
        if "error" in best:
            raise AsgatError(f"No trial could be trained: {best['error']}")
        return best

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    # -- one batch ----------------------------------------------------------------------------------------------------

    def _ask(self, count: int, trials: int) -> list[Trial]:
        """Trials of one architecture, or those waiting in the queue."""
        asked: list[Trial] = []
        fixed: dict[str, Any] = {}
        batch: int | None = None
        for _ in range(count):
            if batch is not None and next_position(self._trials()) // self.batch != batch:
                break  # the trials of a batch are drawn from the same finished trials
            with self.worker.exclusive():
                trial = self.study.ask()
                trial.set_user_attr("worker", self.worker.name)
            stamp(trial)
            everything = self._trials()
            before = everything[: trial.number]
            if sum(t.state.name != "FAIL" for t in before) + self._reserved(everything, trial.number) >= trials:
                trial.set_user_attr(SURPLUS, True)  # other workers asked at the same time
                self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                break
            place = position(everything[trial.number], everything)
            batch = place // self.batch if batch is None else batch
            self.study.sampler = self._sampler(place, fixed)
            for key, values in self.search.space.items():
                _suggest(trial, key, values)
            fixed = fixed or {key: value for key, value in trial.params.items() if key not in BATCHED}
            asked.append(trial)
            if set(self.search.space).isdisjoint(BATCHED):  # all trials of the batch would be the same
                break
        return asked

    def _sampler(self, place: int, fixed: dict[str, Any]) -> Any:
        """Seeded by the trial's position: workers draw differently, and a restarted study draws the same."""
        samplers = self.optuna.samplers
        # Univariate: nothing is drawn before the trial's position, and so its seed, is known.
        sampler = samplers.TPESampler(seed=(1_000_003 * self.seed + place) % 2**32, multivariate=False)
        if not fixed:
            return sampler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            return samplers.PartialFixedSampler(fixed, sampler)

    def _train(self, group: list[Trial], evaluate: Evaluate, on_trial: OnTrial | None) -> None:
        settings = [trial_settings(self.search, trial.params) for trial in group]
        configs = [make_config(self.model, **values) for values in settings]
        try:
            with Heartbeat(group, self.heartbeat):
                scores = evaluate(configs)
        except (AsgatError, torch.OutOfMemoryError) as error:  # settings that cannot be trained
            for trial in group:
                trial.set_user_attr("error", str(error))
            scores = [TrialScore(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)] * len(group)
        except BaseException:  # such as an interrupt: other workers may retry at once
            with self.worker.exclusive():
                for trial in group:
                    self._retry(trial.number, trial.params)
            raise
        for trial, values, score in zip(group, settings, scores, strict=True):
            trial.set_user_attr("settings", values)
            trial.set_user_attr("score", asdict(score))
            if self._finish(trial, score.mean) and on_trial:
                everything = self._trials()
                on_trial(self._row(everything[trial.number], everything))

    def _finish(self, trial: Trial | int, value: float | None) -> bool:
        """Reports a value, or a failure; returns whether the trial was still running for the study."""
        state = self.optuna.trial.TrialState.FAIL if value is None else None
        try:
            self.study.tell(trial, value, state=state)
        except (ValueError, self.optuna.exceptions.UpdateFinishedTrialError):
            return False
        return True

    # -- lost workers -------------------------------------------------------------------------------------------------

    def _retry_lost(self, exclusive: bool = False) -> None:
        """Queues the trials of lost workers again; at once, and in order of position, if no other worker does."""
        now = time.time()
        for trial in self._trials():
            name = trial.user_attrs.get("worker")
            lost = now - last_stamp(trial) > self.timeout or (exclusive and (name is None or self.worker.is_dead(name)))
            if trial.state.name == "RUNNING" and lost:
                self._retry(trial.number, trial.params)
        if exclusive:
            self._repair_queue()

    def _reserved(self, everything: Sequence[FrozenTrial], before: int | None = None) -> int:
        """Failed trials (with a number below ``before``) that a worker is about to queue; no new trial replaces them.

        A trial that is not queued within the timeout has lost that worker too, and is no longer reserved.
        """
        since = datetime.now() - timedelta(seconds=self.timeout)
        failed = [trial for trial in unqueued(everything) if before is None or trial.number < before]
        return sum((trial.datetime_complete or since) > since for trial in failed)

    def _repair_queue(self) -> None:
        """Queues failed trials whose worker died before it queued them, and sorts the queue."""
        for trial in unqueued(self._trials()):
            self._queue(trial.number, trial.params)
        for trial in out_of_order(self._trials()):
            self.storage.set_trial_state_values(trial._trial_id, self.optuna.trial.TrialState.FAIL)
            self._queue(trial.number, trial.params)

    def _retry(self, number: int, params: dict[str, Any]) -> None:
        """Fails a trial and queues its settings; if several workers try, one succeeds."""
        if self._finish(number, None):
            self._queue(number, params)

    def _queue(self, number: int, params: dict[str, Any]) -> None:
        """Queues the settings of a failed trial; its start if its worker was lost before all settings were drawn."""
        everything = self._trials()
        trial = everything[number]
        if trial.user_attrs.get(SURPLUS):
            return
        while set(params) != set(self.search.space) and RETRY_OF in trial.user_attrs:
            trial = everything[trial.user_attrs[RETRY_OF]]  # a trial in the queue has no settings yet
            params = trial.params
        if set(params) != set(self.search.space):
            place, starts = position(trial, everything), self.search.starts
            params = starts[place] if place < len(starts) else {}
        self.study.enqueue_trial(params, user_attrs={RETRY_OF: number})

    def _row(self, trial: FrozenTrial, everything: Sequence[FrozenTrial]) -> dict[str, Any]:
        kept = trial.user_attrs
        extra = {key: kept[key] for key in ("error", RETRY_OF) if key in kept}
        score = dict(kept.get("score", {}))
        value = score.pop("mean", trial.value)
        place = position(trial, everything)
        return {"trial": place, "value": value, **score, "settings": kept.get("settings", {}), **extra}

    # -- facts --------------------------------------------------------------------------------------------------------

    def _has_facts(self, exclusive: bool) -> bool:
        for _ in range(1 if exclusive else 50):  # its creator may be about to write them
            if "facts" in self.study.user_attrs:
                return True
            time.sleep(0.0 if exclusive else 0.1)
        return False

    def _check_facts(self, wanted: str) -> None:
        found = self.study.user_attrs.get("facts")
        if found != wanted:
            theirs, ours = json.loads(found or "{}"), json.loads(wanted)
            differing = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
            raise AsgatError(
                f"The study {self.study.study_name} was made with other settings ({', '.join(differing)}); "
                "choose another --out or --storage."
            )


def _by_architecture(trials: list[Trial]) -> list[list[Trial]]:
    """Consecutive trials of one architecture; trials are reported in the order they were asked for."""

    def architecture(trial: Trial) -> str:
        return json.dumps({k: v for k, v in trial.params.items() if k not in BATCHED}, sort_keys=True)

    return [list(group) for _, group in groupby(trials, architecture)]


def _suggest(trial: Trial, key: str, values: Range | tuple[Any, ...]) -> None:
    if not isinstance(values, Range):
        trial.suggest_categorical(key, values)
    elif isinstance(values.low, int) and isinstance(values.high, int):
        trial.suggest_int(key, values.low, values.high, log=values.log)
    else:
        trial.suggest_float(key, values.low, values.high, log=values.log)
