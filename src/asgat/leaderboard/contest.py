"""The rounds of a leaderboard on one split: all candidates for a few epochs, the better half to the end, and the best
of them on other divisions of the labelled nodes."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.leaderboard.choice import FoldPredictions, choose, prefer_simple, standard_error
from asgat.leaderboard.field import Candidate, Preset
from asgat.leaderboard.folds import fold_splits, is_few
from asgat.leaderboard.trial import Trial, TrialStore, Workbench
from asgat.training.interrupt import Interrupt
from asgat.training.loop import train_runs
from asgat.training.program import Task
from asgat.training.run_state import Epoch, Job, Run, baseline_score, member_seed

SAVE_SECONDS = 30.0  # of training between two savings
# Shares of the time after which the rounds end: the first, that on the whole split, and the last.
FIRST, WHOLE, LAST = 0.4, 0.7, 0.95

Report = Callable[[str, int, int, Epoch | None], None]  # the round, trials done and in all, an epoch


class Clock:
    """The time a leaderboard may take, divided among repeats; ``used`` are seconds of an earlier, stopped start."""

    def __init__(self, seconds: float, used: float = 0.0) -> None:
        self.seconds, self._start = seconds, time.monotonic() - used

    @property
    def used(self) -> float:
        return time.monotonic() - self._start

    def at(self, share: float) -> float:
        """The moment at which a share of the time is over, as ``time.monotonic`` gives it."""
        return self._start + share * self.seconds


class OutOfTimeError(AsgatError):
    """What a candidate needs first would take longer than it may."""


@dataclass(eq=False)
class Contest:
    """Trains the field on one split and its folds.

    Attributes:
        repeat: number of the split; it is part of the keys of its trials.
        start, end: shares of the clock's time between which this repeat runs.
        given: whether the split is the user's.
        labels: those of training and validation nodes, [N]; -1 elsewhere.
        trials: of every candidate that was tried, by number and fold.
        skipped: candidates that were not tried, and why.
        cut: whether the time limit changed what was trained.
    """

    bench: Workbench
    store: TrialStore
    candidates: Sequence[Candidate]
    split: Split
    preset: Preset
    seed: int
    clock: Clock
    interrupt: Interrupt
    repeat: int = 0
    start: float = 0.0
    end: float = 1.0
    given: bool = False
    report: Report | None = None
    trials: dict[tuple[int, int], Trial] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    cut: bool = False

    def __post_init__(self) -> None:
        dataset = self.bench.datasets[False]
        self.labels, self.metric = self.split.visible(dataset.y), dataset.metric
        count = 1 + sum(folds for _, folds in self.rounds)
        self.folds = fold_splits(self.split, self.labels, count, self.seed, self.given)

    @property
    def rounds(self) -> tuple[tuple[int, int], ...]:
        return self.preset.rounds_for(self.split)

    # -- the rounds ---------------------------------------------------------------------------------------------------

    def run(self) -> list[int]:
        """Trains everything; returns the candidate of the last round that is chosen, or those that are averaged."""
        everyone = range(len(self.candidates))
        self._train("first epochs", [(n, 0) for n in everyone], self._at(FIRST), self.preset.first_epochs)
        alive = better_half(self.candidates, {n: self.score(n) for n in everyone})
        left = [trial for (n, _), trial in self.trials.items() if n not in alive]
        self.store.save([one for one in left if is_done(one.run, self.preset.first_epochs) and one.set_aside()])
        self._train("to the end", [(n, 0) for n in sorted(alive)], self._at(WHOLE))
        done, last = 1, self._at(LAST)
        for place, (keep, folds) in enumerate(self.rounds):
            alive = self._best(alive)[:keep]
            until = self._at(WHOLE) + (place + 1) / len(self.rounds) * (last - self._at(WHOLE))
            wanted = [(n, fold) for n in alive if self._can_end(n, folds, until) for fold in range(done, done + folds)]
            self._train(f"on other nodes, {place + 1} of {len(self.rounds)}", wanted, until)
            done += folds
        alive = self._best(alive)
        common = self.common_folds(alive)
        scores = [self.score(n, common) for n in alive]
        parts = [self.folds[fold].val for fold in sorted(common or {0})]
        if is_few(self.split):
            error = standard_error(scores[0], len(np.unique(np.concatenate(parts))))
            return choose(alive, scores, error, self.fold_predictions(alive))
        return [prefer_simple(alive, scores, standard_error(scores[0], sum(map(len, parts))))]

    def _can_end(self, number: int, folds: int, until: float) -> bool:
        """Whether a candidate could be trained on more folds in time, if each takes as long as the first."""
        needed = folds * self.trials_of(number)[0].run.seconds
        able = time.monotonic() + needed <= until
        self.cut = self.cut or not able
        return able

    def _best(self, alive: Iterable[int]) -> list[int]:
        """Candidates with the best validation score first, on the folds that all of them were trained on."""
        usable = [n for n in alive if np.isfinite(self.score(n))]
        if not usable:
            raise AsgatError(
                "No model could be trained: every candidate diverged, or the time limit was too short for a single "
                "epoch. Set a longer --time-limit, or check the features for huge values."
            )
        common = self.common_folds(usable)
        return sorted(usable, key=lambda n: (-self.score(n, common), n))

    def common_folds(self, numbers: Iterable[int]) -> set[int]:
        """The folds that all of some candidates were trained on to the end."""
        return set.intersection(*(self.finished_folds(n) for n in numbers))

    def fold_predictions(self, numbers: Sequence[int]) -> FoldPredictions:
        """The outputs of candidates' networks on the validation nodes of the folds that all were trained on."""
        folds = sorted(self.common_folds(numbers) or {0})
        nodes = {fold: torch.from_numpy(self.folds[fold].val).to(self.bench.device) for fold in folds}
        tasks = {n: self.bench.task(self.candidates[n]) for n in numbers}
        logits = {(n, fold): self.trials[n, fold].logits(tasks[n])[nodes[fold]] for n in numbers for fold in folds}
        return FoldPredictions(self.metric, {fold: tasks[numbers[0]].y[nodes[fold]] for fold in folds}, logits)

    def finished_folds(self, number: int) -> set[int]:
        return {trial.fold for trial in self.trials_of(number) if trial.run.finished and not trial.failed}

    def trials_of(self, number: int) -> list[Trial]:
        """The trials of a candidate by fold."""
        return [self.trials[key] for key in sorted(self.trials) if key[0] == number]

    def score(self, number: int, folds: set[int] | None = None) -> float:
        """The mean validation score of a candidate over some folds, or over those it was trained on to the end.

        Where there is none of these, the score so far on the split itself; minus infinity without even that.
        """
        trials = self.trials_of(number)
        if not trials or trials[0].failed:
            return -np.inf
        wanted = self.finished_folds(number) if folds is None else folds
        counted = [trial for trial in trials if trial.fold in wanted] or trials[:1]
        return float(np.mean([trial.score for trial in counted]))

    def _at(self, share: float) -> float:
        return self.clock.at(self.start + share * (self.end - self.start))

    # -- training -----------------------------------------------------------------------------------------------------

    def _train(self, name: str, wanted: Sequence[tuple[int, int]], until: float, epochs: int | None = None) -> None:
        """Trains trials, by candidate and fold, for some epochs or to their end, and stops after ``until``.

        The remaining time is divided evenly: what a quick trial does not need, the others have.
        """
        trials = [self._trial(*key) for key in wanted if key[0] not in self.skipped]

        def is_open(trial: Trial) -> bool:
            return not is_done(trial.run, epochs) and trial.number not in self.skipped

        waiting, first = trials, True
        while waiting and (first or time.monotonic() < until):
            done = len(trials) - len(waiting)
            for place, trial in enumerate(waiting):
                now = time.monotonic()
                own = now + max(0.0, until - now) / (len(waiting) - place)
                if is_open(trial) and (now < own or (first and place == 0)):
                    self._advance(trial, own, epochs, partial(self._report, name, done + place, len(trials)))
                self._report(name, done + place + 1, len(trials), None)
            waiting, first = [trial for trial in waiting if is_open(trial)], False
        self.cut = self.cut or bool(waiting)

    def _report(self, name: str, done: int, total: int, epoch: Epoch | None) -> None:
        if self.report:
            self.report(name, done, total, epoch)

    def _trial(self, number: int, fold: int) -> Trial:
        key = number, fold
        if key not in self.trials:
            candidate = self.candidates[number]
            job = Job(self.folds[fold], member_seed(self.seed, fold), candidate.config, self.repeat, fold)
            run = Run(job, baseline_score(self.labels, job.split, self.metric))
            self.trials[key] = self.store.restore(Trial(candidate, number, fold, run))
        return self.trials[key]

    def _advance(self, trial: Trial, until: float, epochs: int | None, report: Callable[[Epoch], None]) -> None:
        """Trains a trial; it has at least an epoch, whatever the time."""
        try:
            task = self.bench.task(trial.candidate, self._watch(until))
        except AsgatError as error:  # too large for the memory, or for the time
            self.skipped[trial.number] = str(error)
            if trial.failed:  # one of an earlier start keeps its score
                self.trials.pop((trial.number, trial.fold), None)
            self.cut = self.cut or isinstance(error, OutOfTimeError)
            return
        trial.take_up()
        while not is_done(trial.run, epochs):
            self._slice(task, trial, until, epochs, report)
            self.store.save([trial])
            if self.interrupt.asked:
                raise KeyboardInterrupt
            if time.monotonic() >= until:
                return

    def _slice(
        self, task: Task, trial: Trial, until: float, epochs: int | None, report: Callable[[Epoch], None]
    ) -> None:
        pause_at = min(until, time.monotonic() + SAVE_SECONDS)

        def paused(run: Run) -> bool:
            over = time.monotonic() >= pause_at or self.interrupt.asked
            return is_done(run, epochs) or (over and bool(run.history))

        snapshots = {0: trial.snapshot} if trial.snapshot else {}

        def progress(_: Job, epoch: Epoch) -> None:
            report(epoch)

        for _ in train_runs(task, [trial.run], progress, paused=paused, snapshots=snapshots):
            pass
        trial.snapshot = {} if trial.run.finished else snapshots.get(0, trial.snapshot)

    def _watch(self, until: float) -> Callable[[int, int], None]:
        """A callback that stops building a candidate table if it would take too long.

        The time before the first rows are done does not count: kernels may have been compiled in it.
        """
        first: list[tuple[float, int]] = []

        def building(done: int, rows: int) -> None:
            now = time.monotonic()
            if self.interrupt.asked:
                raise KeyboardInterrupt
            if not first:
                first.append((now, done))
            began, before = first[0]
            needed = (now - began) / max(1, done - before) * (rows - before)
            if now - began > 1.0 and began + needed > max(until, began + 1.0):
                raise OutOfTimeError(f"its table of candidates takes {needed:.0f} seconds, longer than it may")

        return building


def is_done(run: Run, epochs: int | None) -> bool:
    """Whether a run has ended, or had as many epochs as it should."""
    return run.finished or (epochs is not None and len(run.history) >= epochs)


def better_half(candidates: Sequence[Candidate], scores: dict[int, float]) -> list[int]:
    """The better half by score, and the best of every row, best first; of equals the cheaper, which comes first.

    Candidates without a score are left out.
    """
    ranked = sorted((n for n in scores if np.isfinite(scores[n])), key=lambda n: (-scores[n], n))
    best_of_row: dict[str, int] = {}
    for n in ranked:
        best_of_row.setdefault(candidates[n].name, n)
    kept = set(ranked[: -(-len(ranked) // 2)]) | set(best_of_row.values())
    return [n for n in ranked if n in kept]
