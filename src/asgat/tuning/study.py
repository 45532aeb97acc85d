"""A search as an Optuna study: several workers may share it, and none of them has to live to the end.

A trial is asked for, trained with a few others of the same architecture, and told its mean validation score. While it
is trained its worker renews a time stamp; a running trial whose stamp is old has lost its worker, is given up by
whoever notices first, and its settings are queued again.
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from asgat.config import TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import Score
from asgat.tuning.space import BATCHED, Between, Search, settings_of
from asgat.tuning.storage import import_optuna

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
    ) -> None:
        self.optuna = import_optuna()
        self.model, self.search, self.seed, self.batch = model, search, seed, batch
        self.beat, self.grace = beat, grace
        wanted = json.dumps({**facts, "held": search.held, "space": list(search.space)}, sort_keys=True, default=str)
        try:
            self.study: Study = self.optuna.create_study(storage=storage, study_name=name, direction="maximize")
        except self.optuna.exceptions.DuplicatedStudyError:
            self.study = self.optuna.load_study(storage=storage, study_name=name)
            self._check_facts(wanted)
        else:
            self.study.set_user_attr("facts", wanted)
            for start in search.starts:
                self.study.enqueue_trial(start)
        self.study.sampler = self._sampler(0, {})

    def run(self, evaluate: Evaluate, trials: int, seconds: float | None = None, told: Told | None = None) -> None:
        """Works until the study has this many finished trials, or no trial may be begun any more.

        Args:
            evaluate: scores configurations that differ in lr, weight_decay and dropout only.
            trials: finished trials of the study, those of earlier starts and of other workers included.
            seconds: after which no new trial is begun.
            told: called with every trial this worker finished, as a line of the log.
        """
        started = time.monotonic()
        while seconds is None or time.monotonic() - started < seconds:
            self._give_up_lost()
            everything = self.study.get_trials(deepcopy=False)
            if sum(trial.state.name == "COMPLETE" for trial in everything) >= trials:
                return
            missing = trials - sum(trial.state.name in ("COMPLETE", "RUNNING") for trial in everything)
            if missing <= 0:  # the rest is in other hands, which may fail
                time.sleep(min(1.0, self.grace / 4))
                continue
            asked = self._ask(min(self.batch, missing), trials)
            for group in _by_architecture(asked):
                self._train(group, evaluate, told)

    def rows(self) -> list[dict[str, Any]]:
        """The finished trials in their order, as lines of the log."""
        done = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
        return [self._row(trial) for trial in done]

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
        for _ in range(count):
            trial = self.study.ask()
            trial.set_user_attr("beat", time.time())
            before = [t for t in self.study.get_trials(deepcopy=False) if t.number < trial.number]
            if sum(t.state.name != "FAIL" for t in before) >= trials:  # others asked at the same time
                self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                break
            self.study.sampler = self._sampler(trial.number, fixed)
            for key, values in self.search.space.items():
                _suggest(trial, key, values)
            fixed = fixed or {key: value for key, value in trial.params.items() if key not in BATCHED}
            asked.append(trial)
            if set(self.search.space).isdisjoint(BATCHED):  # they would all be the same
                break
        return asked

    def _sampler(self, number: int, fixed: dict[str, Any]) -> Any:
        """Seeded by the trial: workers draw differently, and a study begun anew draws the same."""
        samplers = self.optuna.samplers
        # One setting at a time: nothing is drawn before the trial's number, and so its seed, is known.
        sampler = samplers.TPESampler(seed=(1_000_003 * self.seed + number) % 2**32, multivariate=False)
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
            scores = [Score(0.0, 0.0, 0.0, 0, 0, 0.0)] * len(group)
        except BaseException:  # an interrupt, say: others may try again at once
            for trial in group:
                self._retry(trial.number, trial.params)
            raise
        for trial, values, score in zip(group, settings, scores, strict=True):
            trial.set_user_attr("settings", values)
            trial.set_user_attr("score", asdict(score))
            if self._tell(trial, score.mean) and told:
                told(self._row(self.study.get_trials(deepcopy=False)[trial.number]))

    def _tell(self, trial: Trial, value: float) -> bool:
        """Whether it was this worker's to tell: a trial that others gave up meanwhile stays so."""
        try:
            self.study.tell(trial, value)
        except (ValueError, self.optuna.exceptions.UpdateFinishedTrialError):
            return False
        return True

    # -- lost workers -------------------------------------------------------------------------------------------------

    def _give_up_lost(self) -> None:
        now = time.time()
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state.name == "RUNNING" and now - _stamp(trial) > self.grace:
                self._retry(trial.number, trial.params)

    def _retry(self, number: int, params: dict[str, Any]) -> None:
        """Fails a trial and queues its settings; of several workers that try, one does."""
        try:
            self.study.tell(number, state=self.optuna.trial.TrialState.FAIL)
        except (ValueError, self.optuna.exceptions.UpdateFinishedTrialError):
            return
        if params:
            self.study.enqueue_trial(params, user_attrs={"retry_of": number})

    def _row(self, trial: FrozenTrial) -> dict[str, Any]:
        kept = trial.user_attrs
        extra = {key: kept[key] for key in ("error", "retry_of") if key in kept}
        score = dict(kept.get("score", {}))
        value = score.pop("mean", trial.value)
        return {"trial": trial.number, "value": value, **score, "settings": kept.get("settings", {}), **extra}

    def _check_facts(self, wanted: str) -> None:
        for _ in range(50):  # its maker may not have come to write them
            found = self.study.user_attrs.get("facts")
            if found is not None:
                break
            time.sleep(0.1)
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


def _by_architecture(trials: list[Trial]) -> list[list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        key = json.dumps({k: v for k, v in trial.params.items() if k not in BATCHED}, sort_keys=True)
        groups.setdefault(key, []).append(trial)
    return list(groups.values())


def _suggest(trial: Trial, key: str, values: Between | tuple[Any, ...]) -> None:
    if not isinstance(values, Between):
        trial.suggest_categorical(key, values)
    elif isinstance(values.low, int) and isinstance(values.high, int):
        trial.suggest_int(key, values.low, values.high, log=values.log)
    else:
        trial.suggest_float(key, values.low, values.high, log=values.log)
