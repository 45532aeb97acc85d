"""A leaderboard from its start to the chosen model: repeats, the final ensemble, and what is kept in a folder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError, brief, counted
from asgat.files.atomic import to_json, write_atomic
from asgat.files.raw_file import RawFile
from asgat.files.user_file import MAX_FILE_BYTES
from asgat.leaderboard.claims import gain_over, gain_over_guessing
from asgat.leaderboard.contest import Clock, Contest, Report
from asgat.leaderboard.field import GUESSING, Candidate, make_field, preset_named
from asgat.leaderboard.intervals import (
    Interval,
    NodePredictions,
    guess_score,
    guess_scores,
    mean_scores,
    score_interval,
)
from asgat.leaderboard.standings import AVERAGE, Leaderboard, Row, sentences
from asgat.leaderboard.trial import Trial, TrialStore, Workbench, logits_of, to_probability
from asgat.nn.attention_model import AttentionModel
from asgat.nn.ensemble import average
from asgat.training.interrupt import Interrupt
from asgat.training.loop import ensemble_result
from asgat.training.objective import scores_of
from asgat.training.program import Task
from asgat.training.run_directory import OtherSettingsError
from asgat.training.run_files import BOARD, CONFIG
from asgat.training.run_state import DivergedError, Job, RunResult

TRIALS = "trials"


@dataclass(frozen=True)
class BoardSettings:
    """What a leaderboard depends on apart from the data; with the same settings a stopped one continues."""

    preset: str
    metric: str
    repeats: int
    seed: int
    data: str  # digest
    minutes: float | None = None  # the preset's by default

    @property
    def seconds(self) -> float:
        return 60 * (preset_named(self.preset).minutes if self.minutes is None else self.minutes)

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Final:
    """The chosen model of one repeat, trained: a network, or the average of several of one form.

    With ``partners``, which are models of other settings or forms, the probabilities of all are averaged; ``result``
    has the scores of that average, and otherwise what this model's training gave.
    """

    candidate: Candidate
    config: TrainConfig
    task: Task
    result: RunResult
    partners: tuple["Final", ...] = ()

    def logits(self) -> torch.Tensor:
        """What the model with its partners gives all nodes, [N, classes]."""
        own = logits_of(self.task, self.config, self.result.state)
        return average(torch.stack([own, *(one.logits() for one in self.partners)])) if self.partners else own


class BoardFolder:
    """The files of a leaderboard in a run directory: ``leaderboard.json`` and, until it is done, its trials."""

    def __init__(self, path: Path | str | None) -> None:
        self.path = None if path is None else Path(path)

    @property
    def trials(self) -> Path | None:
        return None if self.path is None else self.path / TRIALS

    def read(self) -> dict[str, Any] | None:
        """What ``leaderboard.json`` holds; None where there is none."""
        if self.path is None or not (file := self.path / BOARD).exists():
            return None
        try:
            held = json.loads(RawFile.read(file, MAX_FILE_BYTES).content)
            if not isinstance(held["settings"], dict) or not isinstance(held["seconds"], int | float):
                raise ValueError("its settings are missing")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise AsgatError(f"{file} is not a leaderboard: {brief(repr(error))}. Start again with --fresh.") from error
        return dict(held)

    def begin(self, settings: BoardSettings, fresh: bool = False) -> dict[str, Any]:
        """What an earlier start with the same settings left.

        Raises:
            OtherSettingsError: it had other settings, or other data.
        """
        if fresh:
            self.discard()
        held = self.read()
        if held is None:
            if not fresh and self.path is not None and (self.path / CONFIG).exists():
                raise OtherSettingsError(
                    f"{self.path} holds a run of a single model; choose another --out, or --fresh to replace it."
                )
            return {"settings": settings.to_dict(), "seconds": 0.0}
        now, then = settings.to_dict(), held["settings"]
        # More time than before is no other leaderboard: what was not cut is the same.
        differing = [key for key in now if key != "minutes" and now[key] != then.get(key)]
        if differing:
            what = "of other data" if differing == ["data"] else f"with other settings ({', '.join(differing)})"
            raise OtherSettingsError(
                f"{self.path} holds a leaderboard {what}; choose another --out, or --fresh to replace it."
            )
        return held

    def write(self, settings: BoardSettings, seconds: float, dataset: str) -> None:
        """Keeps the time that was used so far, and the name of the data for lists of run directories."""
        if self.path is not None:
            write_atomic(self.path / BOARD, board_content(settings.to_dict(), seconds, dataset=dataset))

    def clear_trials(self) -> None:
        """Removes the trials, once the leaderboard is done."""
        TrialStore(self.trials, "", "").clear()

    def discard(self) -> None:
        """Removes the leaderboard and its trials."""
        self.clear_trials()
        if self.path is not None:
            (self.path / BOARD).unlink(missing_ok=True)


def board_content(
    settings: Mapping[str, Any], seconds: float, board: Leaderboard | None = None, dataset: str | None = None
) -> bytes:
    """What ``leaderboard.json`` holds."""
    held = {"settings": dict(settings), "seconds": seconds, "finished": board is not None}
    held |= {} if dataset is None else {"dataset": dataset}
    return to_json({**(board.to_dict() if board else {}), **held})


def run_board(
    datasets: Mapping[bool, Dataset],
    settings: BoardSettings,
    advised: Mapping[str, Any],
    device: torch.device,
    given: bool = False,
    folder: BoardFolder | None = None,
    used: float = 0.0,
    report: Report | None = None,
) -> tuple[Leaderboard, list[Final]]:
    """Trains the field on every split of the data set, and chooses on validation nodes of each by itself.

    Args:
        datasets: the data set, a split for each repeat, under False as an undirected graph; under True with directed
            edges, if they have or seem to have a direction.
        advised: ``k`` and ``order`` for models with attention.
        given: whether the split is the user's.
        used: seconds that an earlier, stopped start took.
        report: called with the progress.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; what was trained is in the folder.
    """
    folder, dataset, preset = folder or BoardFolder(None), datasets[False], preset_named(settings.preset)
    candidates = make_field(dataset, preset, advised, one_way=True in datasets)
    bench = Workbench(dict(datasets), device)
    store = TrialStore(folder.trials, device.type, settings.data)
    clock = Clock(settings.seconds, used)
    contests, finals = [], []

    def save_and_report(name: str, done: int, total: int, epoch: Any) -> None:
        if epoch is None:
            folder.write(settings, clock.used, dataset.name)
        if report:
            report(name, done, total, epoch)

    with Interrupt() as interrupt:
        for repeat, split in enumerate(dataset.splits):
            began = min(1.0, clock.used / max(clock.seconds, 1e-9))
            ends = began + (1.0 - began) / (len(dataset.splits) - repeat)
            contest = Contest(
                bench, store, candidates, split, preset, settings.seed + repeat, clock, interrupt, repeat, began, ends,
                given, save_and_report,
            )  # fmt: skip
            try:
                order = contest.run()
            finally:
                folder.write(settings, clock.used, dataset.name)
            contests.append(contest)
            finals.append(finish(contest, order))
    board = make_board(contests, finals, settings, clock.used)
    return board, finals


def finish(contest: Contest, chosen: Sequence[int]) -> Final:
    """The chosen candidates of a contest, best first, as one model: the average of theirs.

    Candidates of the other direction than the best are left out, because a run directory holds one graph. The first
    with attention, or else with filters, has the others as partners: reports and explanations are of that one.
    """
    best = contest.candidates[chosen[0]]
    alike = [n for n in chosen if contest.candidates[n].directed == best.directed]
    finals = {n: average_folds(contest, n) for n in alike}
    if len(finals) == 1:
        return finals[chosen[0]]
    first = max(alike, key=lambda n: _explained(finals[n]))
    final = replace(finals[first], partners=tuple(finals[n] for n in alike if n != first))
    scores = scores_of(final.logits(), final.task.y, contest.split, final.task.metric)
    # As for one candidate, networks are validated on nodes they left out.
    score, loss = contest.fold_predictions(alike).validate(alike)
    return replace(final, result=replace(final.result, **{**scores, "val_score": score, "val_loss": loss}))


def average_folds(contest: Contest, number: int) -> Final:
    """One candidate as a model: the average of its networks that were trained to the end."""
    candidate, task = contest.candidates[number], contest.bench.task(contest.candidates[number])
    trials = contest.trials_of(number)
    ended = [trial for trial in trials if trial.run.finished and not trial.failed] or trials[:1]
    outcomes = [trial.outcome(task) for trial in ended]
    results = [outcome for outcome in outcomes if not isinstance(outcome, DivergedError)]
    config = candidate.config.replace(members=len(results))
    if len(results) == 1:
        return Final(candidate, config, task, results[0])
    joined = ensemble_result(task, Job(contest.split, contest.seed, config, contest.repeat), results)
    assert isinstance(joined, RunResult)
    # Networks of other folds were trained on validation nodes of the split; each is validated on those it left out.
    score, loss = (float(np.mean([getattr(one, key) for one in results])) for key in ("val_score", "val_loss"))
    return Final(candidate, config, task, replace(joined, val_score=score, val_loss=loss))


def _explained(final: Final) -> int:
    """How much can be shown of a model: 2 for attention, 1 for filters alone."""
    model = final.task.example(final.config)
    return 0 if not isinstance(model, AttentionModel) else 2 if model.convs else 1 if model.filter_convs else 0


def predict_test_nodes(final: Final, split: Split) -> NodePredictions:
    """A trained model's predictions of the test nodes of a split."""
    return NodePredictions.of(split, final.task.y.cpu().numpy(), to_probability(final.logits()))


def score_figures(metric: str, tests: Sequence[NodePredictions]) -> dict[str, Any] | None:
    """Every test score of the models of all splits and of guessing, the metric's interval, and that of its gain."""
    if not all(len(one.nodes) for one in tests):
        return None
    scores, interval = _test_figures(metric, tests)
    figures = {"metric": metric, "scores": scores, "interval": interval, "guessing": guess_scores(tests)}
    return {**figures, "gain": gain_over_guessing(metric, tests)}


def make_board(
    contests: Sequence[Contest], finals: Sequence[Final], settings: BoardSettings, seconds: float
) -> Leaderboard:
    """The table of all repeats."""
    metric, first = settings.metric, contests[0]
    truth = first.bench.datasets[False].y
    has_test = all(len(contest.split.test) for contest in contests)
    tests: dict[str, list[NodePredictions]] = {}
    rows = []
    for name in dict.fromkeys(candidate.name for candidate in first.candidates):
        best = [_best_of_row(contest, name) for contest in contests]
        number = best[0] if best[0] is not None else [c.name for c in first.candidates].index(name)
        candidate, trial = first.candidates[number], first.trials.get((number, 0))
        found = [(c, n) for c, n in zip(contests, best, strict=True) if n is not None]
        if has_test and len(found) == len(contests) and all(n not in c.skipped for c, n in found):
            each = [(c, to_probability(c.trials[n, 0].logits(c.bench.task(c.candidates[n])))) for c, n in found]
            tests[name] = [NodePredictions.of(c.split, truth, probability) for c, probability in each]
        rows.append(
            Row(
                name,
                candidate.model,
                dict(candidate.settings),
                candidate.uses_graph,
                float(np.mean([c.score(n) for c, n in found])) if found else None,
                *_test_figures(metric, tests.get(name)),
                sum(t.run.seconds for c in contests for t in c.trials.values() if t.candidate.name == name),
                first.bench.parameters(candidate),
                trial.epochs if trial else 0,
                len(first.finished_folds(number)),
                sum(name in names_of(final) for final in finals),
                candidate.directed,
                _notes(contests, name, best),
            )
        )
    final_tests = [predict_test_nodes(f, c.split) for c, f in zip(contests, finals, strict=True)]
    test, interval = _test_figures(metric, final_tests if has_test else None)
    val = float(np.mean([final.result.val_score for final in finals]))
    chosen = replace(_chosen_row(rows, finals, first), val=val, test=test, interval=interval)
    rows.sort(key=lambda row: -np.inf if row.val is None else row.val, reverse=True)
    rows.append(_guessing(contests, metric, final_tests if has_test else None))
    cut = any(contest.cut for contest in contests)
    parts = [finals[0], *finals[0].partners]
    members, averaged = sum(part.config.members for part in parts), names_of(finals[0])
    choices = [names_of(final) for final in finals]
    board = Leaderboard(
        metric, settings.preset, len(contests), rows, chosen, members, seconds, cut, averaged=averaged, choices=choices
    )
    alone, graph = (
        next((row.name for row in rows if row.uses_graph is used and row.name in tests), None) for used in (False, True)
    )
    over_guessing = gain_over_guessing(metric, final_tests) if has_test else None
    over_features = gain_over(metric, tests[graph], tests[alone]) if graph and alone else None
    return replace(board, sentences=sentences(board, over_guessing, over_features, alone, graph))


def _test_figures(
    metric: str, tested: Sequence[NodePredictions] | None
) -> tuple[dict[str, float | None] | None, Interval | None]:
    """Every test score, and the interval of the metric's; None without test nodes."""
    return (None, None) if tested is None else (mean_scores(tested), score_interval(metric, tested))


def names_of(final: Final) -> list[str]:
    """The rows whose models a final one averages."""
    return list(dict.fromkeys(part.candidate.name for part in (final, *final.partners)))


def _chosen_row(rows: Sequence[Row], finals: Sequence[Final], contest: Contest) -> Row:
    """The row of the saved model, or one for the average of several; its scores are still to come."""
    final = finals[0]
    names, settings = names_of(final), dict(final.candidate.settings)
    own = [row for row in rows if row.name in names]
    first = next(row for row in own if row.name == final.candidate.name)
    if len(own) == 1:
        return replace(first, settings=settings)
    return replace(
        first,
        name=AVERAGE,
        settings=settings,
        uses_graph=any(row.uses_graph for row in own),
        seconds=sum(row.seconds for row in own),
        parameters=sum(contest.bench.parameters(one.candidate) for one in (final, *final.partners)),
        chosen=sum(len(names_of(one)) > 1 for one in finals),
        note="",
    )


def _best_of_row(contest: Contest, name: str) -> int | None:
    """The candidate of a row that came furthest, and of these the one with the best validation score."""
    usable = [n for n, one in enumerate(contest.candidates) if one.name == name and np.isfinite(contest.score(n))]
    return max(usable, key=lambda n: (len(contest.finished_folds(n)), contest.score(n)), default=None)


def _notes(contests: Sequence[Contest], name: str, best: Sequence[int | None]) -> str:
    """What happened to the best candidate of a row otherwise than planned, and in which repeats."""
    repeats: dict[str, list[int]] = {}
    for repeat, (contest, known) in enumerate(zip(contests, best, strict=True), 1):
        number = known if known is not None else [one.name for one in contest.candidates].index(name)
        if note := _note(contest, number, contest.trials.get((number, 0))):
            repeats.setdefault(note, []).append(repeat)
    if len(repeats) == 1 and len(contests) in map(len, repeats.values()):
        return next(iter(repeats))
    return "; ".join(
        f"in repeat{'' if len(which) == 1 else 's'} {' and '.join(map(str, which))}, {note}"
        for note, which in repeats.items()
    )


def _note(contest: Contest, number: int, trial: Trial | None) -> str:
    if number in contest.skipped:
        return f"{'not tried' if trial is None else 'stopped'}: {contest.skipped[number]}"
    if trial is None or trial.failed:
        return "diverged" if trial is not None and trial.run.history else "not tried: no time was left"
    return "" if trial.run.finished else f"stopped after {counted(trial.epochs, 'epoch')}"


def _guessing(contests: Sequence[Contest], metric: str, tests: Sequence[NodePredictions] | None) -> Row:
    """The row of the best guess: on validation nodes from the training labels, on test nodes from both."""
    parts = [(Split(c.split.train, c.split.val[:0], c.split.val), c) for c in contests]
    shape = contests[0].bench.datasets[False].num_nodes, contests[0].bench.datasets[False].num_classes
    validated = [NodePredictions.of(part, c.labels, np.zeros(shape)) for part, c in parts]
    val = guess_scores(validated)[metric]
    test = None if tests is None else guess_scores(tests)
    interval = None if tests is None else score_interval(metric, tests, guess_score)
    return Row(GUESSING, "", {}, False, -val if metric == "log_loss" else val, test, interval, 0.0, 0)
