"""A search as an Optuna study: trials are asked for, trained, and told, one after the other.

The number of a trial decides which known settings it has, or seeds its sampler: a search that is stopped and started
again draws the same trials, and several processes of one study draw different ones.
"""

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from asgat.config import TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import TrialScore
from asgat.tuning.space import Range, SearchSpace, trial_settings
from asgat.tuning.storage import open_storage, optuna

Evaluate = Callable[[TrainConfig], TrialScore]
Row = dict[str, Any]
State = optuna.trial.TrialState
ROW = "row"  # the user attribute of a trial with its settings and scores


class Tuner:
    """The study of a search, in a storage that other processes may use too."""

    def __init__(
        self,
        url: str,  # of the storage
        name: str,  # of the study in the storage
        model: str,
        search: SearchSpace,
        facts: dict[str, Any],  # data set, runs and so on; a study of that name with other facts is refused
        seed: int = 0,  # of the sampler
    ) -> None:
        self.model, self.search, self.seed = model, search, seed
        space = {key: str(values) for key, values in search.space.items()}
        facts = json.loads(json.dumps({**facts, "held": search.fixed, "space": space}, default=str))
        self.storage = open_storage(url)
        self.study: optuna.Study = optuna.create_study(
            storage=self.storage, study_name=name, direction="maximize", load_if_exists=True
        )
        if not self.study.trials and "facts" not in self.study.user_attrs:  # in this order: another process may write
            self.study.set_user_attr("facts", facts)
        theirs = self.study.user_attrs.get("facts", {})
        if differing := sorted(key for key in facts.keys() | theirs.keys() if facts.get(key) != theirs.get(key)):
            raise AsgatError(
                f"The study {name} was made with other settings ({', '.join(differing)}); "
                "choose another --out or --storage."
            )

    def run(
        self,
        evaluate: Evaluate,
        trials: int,
        seconds: float = math.inf,
        on_trial: Callable[[Row], None] | None = None,
    ) -> None:
        """Trains trials until the study has this many finished ones, or the time is over."""
        end = time.monotonic() + seconds
        while len(self.rows()) < trials and time.monotonic() < end:
            trial = self.study.ask()
            try:
                score = self._train(trial, evaluate)
            except BaseException:  # such as an interrupt
                self.release([trial])
                raise
            done = self.study.tell(trial, score)
            if on_trial:
                on_trial(_row(done))

    def release(self, trials: Iterable[optuna.Trial | optuna.trial.FrozenTrial] | None = None) -> None:
        """Returns trials to the queue, by default all that are running; they keep their numbers and settings."""
        for trial in self.study.get_trials(states=(State.RUNNING,)) if trials is None else trials:
            self.storage.set_trial_state_values(trial._trial_id, State.WAITING)

    def rows(self) -> list[Row]:
        """The finished trials in order of their number, as rows of the log."""
        done = self.study.get_trials(deepcopy=False, states=(State.COMPLETE,))
        return [_row(trial) for trial in done if ROW in trial.user_attrs]

    def best(self) -> Row:
        """The trial with the best score; the first of equals."""
        best = max(self.rows(), key=lambda row: (row["value"], -row["trial"]), default=None)
        if best is None:
            raise AsgatError("No trial has been finished; allow more --trials or --seconds.")
        if "error" in best:
            raise AsgatError(f"No trial could be trained: {best['error']}")
        return best

    def _train(self, trial: optuna.Trial, evaluate: Evaluate) -> float:
        drawn, starts = {}, self.search.starts
        start = starts[trial.number] if trial.number < len(starts) else {}
        for place, (key, values) in enumerate(self.search.space.items()):
            # A seed for each setting, so that those of a trial that was killed while it was drawn change no other.
            seed = int(np.random.SeedSequence([self.seed, trial.number, place]).generate_state(1)[0])
            self.study.sampler = _Sampler(start, seed=seed, multivariate=False)
            drawn[key] = _suggest(trial, key, values)
        settings, error = trial_settings(self.search, drawn), {}
        try:
            score = evaluate(make_config(self.model, **settings))
        except (AsgatError, torch.OutOfMemoryError) as reason:  # settings that cannot be trained
            score, error = TrialScore(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0), {"error": str(reason)}
        row = asdict(score)
        value: float = row.pop("mean")
        trial.set_user_attr(ROW, {**row, "settings": settings, **error})
        return value


class _Sampler(optuna.samplers.TPESampler):
    """Optuna's TPE, except for settings that are known."""

    def __init__(self, known: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self.known = known

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        if param_name in self.known:
            return self.known[param_name]
        return super().sample_independent(study, trial, param_name, param_distribution)


def _row(trial: optuna.trial.FrozenTrial) -> Row:
    return {"trial": trial.number, "value": trial.value, **trial.user_attrs[ROW]}


def _suggest(trial: optuna.Trial, key: str, values: Range | tuple[Any, ...]) -> Any:
    if not isinstance(values, Range):
        return trial.suggest_categorical(key, values)
    if isinstance(values.low, int) and isinstance(values.high, int):
        return trial.suggest_int(key, values.low, values.high, log=values.log)
    return trial.suggest_float(key, values.low, values.high, log=values.log)
