"""A search as an Optuna study that several workers may share, and that survives the death of any of them.

A trial is asked for, trained with a few others of the same architecture, and reported with its mean validation score.
While it is trained, its worker renews a time stamp and holds a file lock. A running trial whose stamp is old, or whose
worker's lock is free, has lost its worker: the first worker that notices returns it to the queue.

With a single worker, a search that was killed and restarted ends with the same trials as an uninterrupted one: the
position of a trial seeds its sampler and decides which trials it is trained with.
"""

import json
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from asgat.config import TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import TrialScore
from asgat.tuning.space import BATCHED, Range, SearchSpace, trial_settings
from asgat.tuning.storage import optuna
from asgat.tuning.worker import Worker, heartbeat, last_stamp, stamp

Evaluate = Callable[[Sequence[TrainConfig]], list[TrialScore]]
OnTrial = Callable[[dict[str, Any]], None]
SURPLUS = "surplus"  # user attribute of a trial begun at the same time as another worker's last one, and discarded
RETRY_OF = "retry_of"  # user attribute in studies of earlier versions: number of the failed trial that this one repeats


class Tuner:
    """A worker of a study."""

    heartbeat, timeout = 20.0, 90.0  # seconds between two stamps of a trial, and after which it counts as lost

    def __init__(
        self,
        storage: optuna.storages.BaseStorage,
        name: str,  # of the study in the storage
        model: str,
        search: SearchSpace,
        facts: dict[str, Any],  # data set, runs and so on; a study of that name with other facts is refused
        seed: int = 0,  # of the sampler; with one worker the trials are the same every time
        batch: int = 4,  # trials of one architecture that are trained as one program
        workers: Path | None = None,  # folder of the locks of all workers, if they share one
    ) -> None:
        self.storage, self.model, self.search, self.seed, self.batch = storage, model, search, seed, batch
        self.worker = Worker(workers)
        wanted = json.dumps({**facts, "held": search.fixed, "space": list(search.space)}, sort_keys=True, default=str)
        with self.worker.exclusive() as exclusive:
            try:
                self.study: optuna.Study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
                patience = 0.0
            except optuna.exceptions.DuplicatedStudyError:
                self.study = optuna.load_study(storage=storage, study_name=name)
                patience = 0.0 if exclusive else 5.0  # its creator may be about to write the facts
            give_up = time.monotonic() + patience
            while "facts" not in self.study.user_attrs and time.monotonic() < give_up:
                time.sleep(0.1)
            if "facts" not in self.study.user_attrs:  # it is new, or its creator was killed
                for start in search.starts[len(self._trials()) :]:
                    self.study.enqueue_trial(start)
                self.study.set_user_attr("facts", wanted)
        theirs, ours = json.loads(self.study.user_attrs["facts"]), json.loads(wanted)
        differing = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
        if differing:
            raise AsgatError(
                f"The study {name} was made with other settings ({', '.join(differing)}); "
                "choose another --out or --storage."
            )
        self.study.sampler = self._sampler(0, {})

    def run(
        self, evaluate: Evaluate, trials: int, seconds: float | None = None, on_trial: OnTrial | None = None
    ) -> None:
        """Works until the study has this many finished trials, those of other workers included, or the time is over.

        ``evaluate`` gets configurations that differ in lr, weight_decay and dropout only; ``on_trial`` every trial that
        this worker finished, as a row of the log.
        """
        started = time.monotonic()
        with self.worker.alive():
            while seconds is None or time.monotonic() - started < seconds:
                with self.worker.exclusive() as exclusive:
                    self._release_lost(exclusive)
                everything = self._trials()
                if sum(trial.state.name == "COMPLETE" for trial in everything) >= trials:
                    return
                missing = trials - sum(trial.state.name in ("COMPLETE", "RUNNING") for trial in everything)
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

    def _trials(self) -> list[optuna.trial.FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _ask(self, count: int, trials: int) -> list[optuna.Trial]:
        """Trials of one architecture, or those waiting in the queue."""
        asked: list[optuna.Trial] = []
        fixed: dict[str, Any] = {}
        batch: int | None = None
        for _ in range(count):
            if batch is not None and next_position(self._trials()) // self.batch != batch:
                break  # the trials of a batch are drawn from the same finished trials
            with suppress(optuna.exceptions.UpdateFinishedTrialError):  # a worker taken for lost finished it after all
                with self.worker.exclusive():
                    trial = self.study.ask()
                    trial.set_user_attr("worker", self.worker.name)
                stamp(trial)
                everything = self._trials()
                if sum(before.state.name != "FAIL" for before in everything[: trial.number]) >= trials:
                    trial.set_user_attr(SURPLUS, True)  # other workers asked at the same time
                    self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
                    break
                place = position(everything[trial.number], everything)
                batch = place // self.batch if batch is None else batch
                self.study.sampler = self._sampler(place, fixed)
                for key, values in self.search.space.items():
                    if key in trial.params:  # drawn by a lost worker: what follows is drawn as it would have been
                        known = everything[trial.number]
                        self.study.sampler.sample_independent(self.study, known, key, known.distributions[key])
                    _suggest(trial, key, values)
                fixed = fixed or {key: value for key, value in trial.params.items() if key not in BATCHED}
                asked.append(trial)
                if set(self.search.space).isdisjoint(BATCHED):  # all trials of the batch would be the same
                    break
        return asked

    def _sampler(self, place: int, fixed: dict[str, Any]) -> Any:
        """Seeded by the trial's position: workers draw differently, and a restarted study draws the same."""
        samplers = optuna.samplers
        # Univariate: nothing is drawn before the trial's position, and so its seed, is known.
        sampler = samplers.TPESampler(seed=(1_000_003 * self.seed + place) % 2**32, multivariate=False)
        if not fixed:
            return sampler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return samplers.PartialFixedSampler(fixed, sampler)

    def _train(self, group: list[optuna.Trial], evaluate: Evaluate, on_trial: OnTrial | None) -> None:
        settings = [trial_settings(self.search, trial.params) for trial in group]
        configs = [make_config(self.model, **values) for values in settings]
        error = ""
        try:
            with heartbeat(group, self.heartbeat):
                scores = evaluate(configs)
        except (AsgatError, torch.OutOfMemoryError) as reason:  # settings that cannot be trained
            error = str(reason)
            scores = [TrialScore(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)] * len(group)
        except BaseException:  # such as an interrupt: other workers may retry at once
            with self.worker.exclusive():
                for trial in group:
                    self._release(trial)
            raise
        for trial, values, score in zip(group, settings, scores, strict=True):
            try:
                if error:
                    trial.set_user_attr("error", error)
                trial.set_user_attr("settings", values)
                trial.set_user_attr("score", asdict(score))
                self.study.tell(trial, score.mean)
            except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
                continue  # another worker took it over
            if on_trial:
                everything = self._trials()
                on_trial(self._row(everything[trial.number], everything))

    def _release_lost(self, exclusive: bool = False) -> None:
        """Returns the trials of lost workers to the queue; at once if no other worker does."""
        now = time.time()
        for trial in self._trials():
            name = trial.user_attrs.get("worker")
            lost = now - last_stamp(trial) > self.timeout or (exclusive and (name is None or self.worker.is_dead(name)))
            if trial.state.name == "RUNNING" and lost:
                self._release(trial)

    def _release(self, trial: optuna.Trial | optuna.trial.FrozenTrial) -> None:
        """Returns a trial to the queue, unless another worker finished it meanwhile.

        It keeps its number, so that the queue is in order, and the settings that were drawn.
        """
        states = optuna.trial.TrialState
        with suppress(optuna.exceptions.UpdateFinishedTrialError):
            state = states.FAIL if SURPLUS in trial.user_attrs else states.WAITING
            self.storage.set_trial_state_values(trial._trial_id, state)

    def _row(self, trial: optuna.trial.FrozenTrial, everything: Sequence[optuna.trial.FrozenTrial]) -> dict[str, Any]:
        kept = trial.user_attrs
        score = dict(kept.get("score", {}))
        row = {"trial": position(trial, everything), "value": score.pop("mean", trial.value), **score}
        row["settings"] = kept.get("settings", {})
        return {**row, **{key: kept[key] for key in ("error", RETRY_OF) if key in kept}}


def position(trial: optuna.trial.FrozenTrial, trials: Sequence[optuna.trial.FrozenTrial]) -> int:
    """The position of a trial among those of the study that count: surplus trials and retries are left out."""
    while (before := trial.user_attrs.get(RETRY_OF)) is not None:
        trial = trials[before]
    return _count(trials[: trial.number])


def next_position(trials: Sequence[optuna.trial.FrozenTrial]) -> int:
    """The position of the trial that is asked for next: the first in the queue, or a new one."""
    waiting = next((trial for trial in trials if trial.state.name == "WAITING"), None)
    return _count(trials) if waiting is None else position(waiting, trials)


def _count(trials: Sequence[optuna.trial.FrozenTrial]) -> int:
    return sum(not {SURPLUS, RETRY_OF} & trial.user_attrs.keys() for trial in trials)


def _by_architecture(trials: list[optuna.Trial]) -> list[list[optuna.Trial]]:
    """Consecutive trials of one architecture; trials are reported in the order they were asked for."""

    def architecture(trial: optuna.Trial) -> str:
        return json.dumps({k: v for k, v in trial.params.items() if k not in BATCHED}, sort_keys=True)

    return [list(group) for _, group in groupby(trials, architecture)]


def _suggest(trial: optuna.Trial, key: str, values: Range | tuple[Any, ...]) -> None:
    if not isinstance(values, Range):
        trial.suggest_categorical(key, values)
    elif isinstance(values.low, int) and isinstance(values.high, int):
        trial.suggest_int(key, values.low, values.high, log=values.log)
    else:
        trial.suggest_float(key, values.low, values.high, log=values.log)
