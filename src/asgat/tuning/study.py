"""A search as an Optuna study: several workers may share it, and none of them has to live to the end.

A trial is asked for, trained with a few others of the same architecture, and told its mean validation score. While it
is trained its worker renews a time stamp and, on a machine with others, holds a lock; a running trial whose stamp is
old, or whose worker's lock is free, has lost its worker, is given up by whoever notices first, and queued again.

With one worker a search that was killed ends with the trials of one that was not: a trial has a place in the order of
all trials, which its retry inherits. The place seeds its sampler, tells with which others it is trained, and is its
number in the log.
"""

from __future__ import annotations

import json
import threading
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
from asgat.tuning.evaluation import Score
from asgat.tuning.space import BATCHED, Between, Search, settings_of
from asgat.tuning.storage import import_optuna
from asgat.tuning.worker import Worker

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

Evaluate = Callable[[Sequence[TrainConfig]], list[Score]]
Told = Callable[[dict[str, Any]], None]
BEAT, GRACE = 20.0, 90.0  # seconds between two stamps, and after which one is old


class Tuner:
    """A worker of a study.

    Args:
        storage: where the study is kept.
        name: the study's name there.
        model: a model's name in the registry.
        search: what is searched.
        facts: what makes two studies the same one: data set, runs, seed and so on. A study of that name with other
            facts is refused.
        seed: of the sampler; with one worker the trials are the same every time.
        batch: trials of one architecture that are trained together.
        beat, grace: seconds between two time stamps of a running trial, and after which it is given up.
        workers: folder of the locks of all workers, if they share one.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,
        model: str,
        search: Search,
        facts: dict[str, Any],
        seed: int = 0,
        batch: int = 4,
        beat: float = BEAT,
        grace: float = GRACE,
        workers: Path | None = None,
    ) -> None:
        self.optuna = import_optuna()
        self.storage, self.model, self.search, self.seed, self.batch = storage, model, search, seed, batch
        self.beat, self.grace, self.worker = beat, grace, Worker(workers)
        wanted = json.dumps({**facts, "held": search.held, "space": list(search.space)}, sort_keys=True, default=str)
        with self.worker.alone() as alone:
            try:
                self.study: Study = self.optuna.create_study(storage=storage, study_name=name, direction="maximize")
                new = True
            except self.optuna.exceptions.DuplicatedStudyError:
                self.study = self.optuna.load_study(storage=storage, study_name=name)
                new = not self._has_facts(alone)
            if new:  # or its maker was killed before it came to the facts
                for start in search.starts[len(self.study.get_trials(deepcopy=False)) :]:
                    self.study.enqueue_trial(start)
                self.study.set_user_attr("facts", wanted)
        self._check_facts(wanted)
        self.study.sampler = self._sampler(0, {})

    def run(self, evaluate: Evaluate, trials: int, seconds: float | None = None, told: Told | None = None) -> None:
        """Works until the study has this many finished trials, or no trial may be begun any more.

        Args:
            evaluate: scores configurations that differ in lr, weight_decay and dropout only.
            trials: finished trials of the study, those of earlier starts and of other workers included.
            seconds: after which no new trial is begun.
            told: called with every trial this worker finished, as a line of the log.
        """
        with self.worker.alive():
            self._run(evaluate, trials, seconds, told)

    def _run(self, evaluate: Evaluate, trials: int, seconds: float | None, told: Told | None) -> None:
        started = time.monotonic()
        while seconds is None or time.monotonic() - started < seconds:
            with self.worker.alone() as alone:
                self._give_up_lost(alone)
            everything = self.study.get_trials(deepcopy=False)
            if sum(trial.state.name == "COMPLETE" for trial in everything) >= trials:
                return
            missing = trials - sum(trial.state.name in ("COMPLETE", "RUNNING") for trial in everything)
            missing -= self._between(everything, everything)
            if missing <= 0:  # the rest is in other hands, which may fail
                time.sleep(min(1.0, self.grace / 4))
                continue
            asked = self._ask(min(self.batch, missing), trials)
            for group in _by_architecture(asked):
                self._train(group, evaluate, told)

    def rows(self) -> list[dict[str, Any]]:
        """The finished trials in their order, as lines of the log."""
        everything = self.study.get_trials(deepcopy=False)
        done = [self._row(trial, everything) for trial in everything if trial.state.name == "COMPLETE"]
        return sorted(done, key=lambda row: row["trial"])

    def best(self) -> dict[str, Any]:
        """The trial with the best validation score, of equals the first."""
        rows = self.rows()
        if not rows:
            raise AsgatError("No trial has been finished; allow more --trials or --seconds.")
        best = max(rows, key=lambda row: (row["value"], -row["trial"]))
        if "error" in best:
            raise AsgatError(f"No trial could be trained: {best['error']}")
        return best

    # -- one batch ----------------------------------------------------------------------------------------------------

    def _ask(self, count: int, trials: int) -> list[Trial]:
        """Trials of one architecture, as far as none is waiting in the queue."""
        asked: list[Trial] = []
        fixed: dict[str, Any] = {}
        batch: int | None = None
        for _ in range(count):
            if batch is not None and _next_place(self.study.get_trials(deepcopy=False)) // self.batch != batch:
                break  # those of one batch are drawn from the same knowledge, and it would be another's
            with self.worker.alone():
                trial = self.study.ask()
                trial.set_user_attr("worker", self.worker.name)
            trial.set_user_attr("beat", time.time())
            everything = self.study.get_trials(deepcopy=False)
            before = [t for t in everything if t.number < trial.number]
            taken = sum(t.state.name != "FAIL" for t in before) + self._between(before, everything)
            if taken >= trials:  # others asked at the same time
                trial.set_user_attr("surplus", True)
                self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                break
            place = _place(everything[trial.number], everything)
            batch = place // self.batch if batch is None else batch
            self.study.sampler = self._sampler(place, fixed)
            for key, values in self.search.space.items():
                _suggest(trial, key, values)
            fixed = fixed or {key: value for key, value in trial.params.items() if key not in BATCHED}
            asked.append(trial)
            if set(self.search.space).isdisjoint(BATCHED):  # they would all be the same
                break
        return asked

    def _sampler(self, place: int, fixed: dict[str, Any]) -> Any:
        """Seeded by the trial's place: workers draw differently, and a study begun anew draws the same."""
        samplers = self.optuna.samplers
        # One setting at a time: nothing is drawn before the trial's place, and so its seed, is known.
        sampler = samplers.TPESampler(seed=(1_000_003 * self.seed + place) % 2**32, multivariate=False)
        if not fixed:
            return sampler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            return samplers.PartialFixedSampler(fixed, sampler)

    def _train(self, group: list[Trial], evaluate: Evaluate, told: Told | None) -> None:
        settings = [settings_of(self.search, trial.params) for trial in group]
        configs = [make_config(self.model, **values) for values in settings]
        try:
            with _Beating(group, self.beat):
                scores = evaluate(configs)
        except (AsgatError, torch.OutOfMemoryError) as error:  # settings that cannot be trained, say for want of memory
            for trial in group:
                trial.set_user_attr("error", str(error))
            scores = [Score(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)] * len(group)
        except BaseException:  # an interrupt, say: others may try again at once
            with self.worker.alone():
                for trial in group:
                    self._retry(trial.number, trial.params)
            raise
        for trial, values, score in zip(group, settings, scores, strict=True):
            trial.set_user_attr("settings", values)
            trial.set_user_attr("score", asdict(score))
            if self._tell(trial, score.mean) and told:
                everything = self.study.get_trials(deepcopy=False)
                told(self._row(everything[trial.number], everything))

    def _tell(self, trial: Trial, value: float) -> bool:
        """Whether it was this worker's to tell: a trial that others gave up meanwhile stays so."""
        try:
            self.study.tell(trial, value)
        except (ValueError, self.optuna.exceptions.UpdateFinishedTrialError):
            return False
        return True

    # -- lost workers -------------------------------------------------------------------------------------------------

    def _give_up_lost(self, alone: bool = False) -> None:
        """Queues the trials of lost workers again; with the certainty to be alone at it, at once and in order."""
        now = time.time()
        for trial in self.study.get_trials(deepcopy=False):
            name = trial.user_attrs.get("worker")
            lost = now - _stamp(trial) > self.grace or (alone and (name is None or self.worker.gone(name)))
            if trial.state.name == "RUNNING" and lost:
                self._retry(trial.number, trial.params)
        if alone:
            self._mend()

    def _between(self, some: Sequence[FrozenTrial], everything: Sequence[FrozenTrial]) -> int:
        """Lost trials that a worker has failed and is about to queue: their places are not for new ones.

        One that is still so after the time of grace has lost that worker too, and its place is free.
        """
        retried = {trial.user_attrs.get("retry_of") for trial in everything}
        since = datetime.now() - timedelta(seconds=self.grace)
        return sum(
            trial.state.name == "FAIL"
            and not trial.user_attrs.get("surplus")
            and trial.number not in retried
            and (trial.datetime_complete or since) > since
            for trial in some
        )

    def _mend(self) -> None:
        """Queues what a worker failed and died before it queued it, and brings the queue into order."""
        everything = self.study.get_trials(deepcopy=False)
        retried = {trial.user_attrs.get("retry_of") for trial in everything}
        for trial in everything:
            forgotten = trial.state.name == "FAIL" and not trial.user_attrs.get("surplus")
            if forgotten and trial.number not in retried:
                self._queue(trial.number, trial.params)
        everything = self.study.get_trials(deepcopy=False)
        waiting = [trial for trial in everything if trial.state.name == "WAITING"]
        places = [_place(trial, everything) for trial in waiting]
        first = next((i for i in range(1, len(places)) if places[i] < max(places[:i])), None)
        if first is None:
            return
        late = [pair for pair in zip(places, waiting, strict=True) if pair[0] > min(places[first:])]
        for _, trial in sorted(late, key=lambda pair: pair[0]):
            self.storage.set_trial_state_values(trial._trial_id, self.optuna.trial.TrialState.FAIL)
            self._queue(trial.number, trial.params)

    def _retry(self, number: int, params: dict[str, Any]) -> None:
        """Fails a trial and queues its settings; of several workers that try, one does."""
        try:
            self.study.tell(number, state=self.optuna.trial.TrialState.FAIL)
        except (ValueError, self.optuna.exceptions.UpdateFinishedTrialError):
            return
        self._queue(number, params)

    def _queue(self, number: int, params: dict[str, Any]) -> None:
        """Queues a failed trial: its settings, or if its worker was lost before all were drawn, what it began with."""
        everything = self.study.get_trials(deepcopy=False)
        trial = everything[number]
        if trial.user_attrs.get("surplus"):
            return
        while set(params) != set(self.search.space) and "retry_of" in trial.user_attrs:
            trial = everything[trial.user_attrs["retry_of"]]  # what waits in the queue has no settings yet
            params = trial.params
        if set(params) != set(self.search.space):
            place, starts = _place(trial, everything), self.search.starts
            params = starts[place] if place < len(starts) else {}
        self.study.enqueue_trial(params, user_attrs={"retry_of": number})

    def _row(self, trial: FrozenTrial, everything: Sequence[FrozenTrial]) -> dict[str, Any]:
        kept = trial.user_attrs
        extra = {key: kept[key] for key in ("error", "retry_of") if key in kept}
        score = dict(kept.get("score", {}))
        value = score.pop("mean", trial.value)
        place = _place(trial, everything)
        return {"trial": place, "value": value, **score, "settings": kept.get("settings", {}), **extra}

    def _has_facts(self, alone: bool) -> bool:
        for _ in range(1 if alone else 50):  # its maker may not have come to write them
            if "facts" in self.study.user_attrs:
                return True
            time.sleep(0.0 if alone else 0.1)
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


class _Beating:
    """Renews the time stamps of some trials while the body runs."""

    def __init__(self, trials: list[Trial], seconds: float) -> None:
        self.trials, self.seconds = trials, seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while not self.over.wait(self.seconds):
            for trial in self.trials:
                try:
                    trial.set_user_attr("beat", time.time())
                except Exception:  # given up by others, or the database is away for a moment: no reason to stop
                    continue

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def _stamp(trial: FrozenTrial) -> float:
    start = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(start, float(trial.user_attrs.get("beat", 0.0)))


def _place(trial: FrozenTrial, everything: Sequence[FrozenTrial]) -> int:
    """A trial's place in the order of all that are no retries; a retry has that of the trial it stands for."""
    while (before := trial.user_attrs.get("retry_of")) is not None:
        trial = everything[before]
    return sum(_original(other) for other in everything[: trial.number])


def _original(trial: FrozenTrial) -> bool:
    return "retry_of" not in trial.user_attrs and not trial.user_attrs.get("surplus")


def _next_place(everything: Sequence[FrozenTrial]) -> int:
    waiting = next((trial for trial in everything if trial.state.name == "WAITING"), None)
    return sum(map(_original, everything)) if waiting is None else _place(waiting, everything)


def _by_architecture(trials: list[Trial]) -> list[list[Trial]]:
    """Neighbours of one architecture: trials are told in the order they were asked for."""

    def architecture(trial: Trial) -> str:
        return json.dumps({k: v for k, v in trial.params.items() if k not in BATCHED}, sort_keys=True)

    return [list(group) for _, group in groupby(trials, architecture)]


def _suggest(trial: Trial, key: str, values: Between | tuple[Any, ...]) -> None:
    if not isinstance(values, Between):
        trial.suggest_categorical(key, values)
    elif isinstance(values.low, int) and isinstance(values.high, int):
        trial.suggest_int(key, values.low, values.high, log=values.log)
    else:
        trial.suggest_float(key, values.low, values.high, log=values.log)
