"""The training loop: every run of every command goes through it."""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.checkpoint import Checkpointer
from asgat.training.lanes import Layout, ProgramGroup
from asgat.training.objective import evaluate
from asgat.training.program import Program, Task, epochs_of, other_model, shapes
from asgat.training.run_state import (
    DivergedError,
    Epoch,
    Job,
    Outcome,
    Run,
    RunResult,
    State,
    baseline_score,
    joined_history,
    member_seed,
)

log = logging.getLogger(__name__)
OWN_SETTINGS = ("lr", "weight_decay", "dropout")  # in which stacked runs may differ
Progress = Callable[[Job, Epoch], None]
MakeProgram = Callable[[Task, Sequence[Run], Sequence[State | None]], Program | ProgramGroup]


def train(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    split: Split,
    config: TrainConfig,
    seed: int = 0,
    metric: str = "micro_f1",
    progress: Callable[[Epoch], None] | None = None,
) -> RunResult:
    """Trains one model, or one ensemble, and returns its scores and weights at the epoch early stopping kept.

    Args:
        build: makes the model for some settings; called once per attempt, after seeding.
        inputs: what the model's ``forward`` takes, features first.
        y: labels of all nodes; those of validation and test nodes do not enter the loss.
        split: node indices.
        config: learning rate, patience and so on.
        seed: of the first attempt; later attempts derive theirs from it.
        metric: ``"micro_f1"`` or ``"roc_auc"``, the validation score.
        progress: called after every epoch.

    Raises:
        DivergedError: every attempt diverged.
    """
    report = None if progress is None else lambda _, epoch: progress(epoch)
    ((_, outcome),) = train_jobs(Task(build, inputs, y, metric), [Job(split, seed, config)], progress=report)
    if isinstance(outcome, DivergedError):
        raise outcome
    return outcome


def train_jobs(
    task: Task,
    jobs: Sequence[Job],
    at_once: int | None = None,
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
) -> Generator[tuple[int, Outcome], None, None]:
    """Positions of jobs and their results, as they become known.

    The networks of an ensemble (``members`` above 1) are trained as runs of their own, each stopped when it is best
    itself; their probabilities are averaged.

    Args:
        task: what the jobs share.
        jobs: if they are stacked their settings may differ in lr, weight_decay and dropout only.
        at_once: runs stacked at a time at most; all of them by default.
        progress: called with the job and every epoch.
        checkpointer: saves unfinished runs, and has those of an earlier start.
    """
    members = [(position, member) for position, job in enumerate(jobs) for member in members_of(job)]
    labels = task.y.cpu().numpy()
    runs = [Run(member, baseline_score(labels, member.split, task.metric)) for _, member in members]
    for index, _ in train_runs(task, runs, at_once, progress, checkpointer):
        position = members[index][0]
        own = [run for run, (owner, _) in zip(runs, members, strict=True) if owner == position]
        if all(run.finished and not run.reported for run in own):
            for run in own:
                run.reported = True
            outcomes = [run.outcome() for run in own]
            yield position, ensemble_result(task, jobs[position], outcomes)


def members_of(job: Job) -> list[Job]:
    """The job itself, or those of the networks of an ensemble."""
    if job.config.members == 1:
        return [job]
    config = job.config.replace(members=1)
    return [Job(job.split, member_seed(job.seed, i), config, job.run, i) for i in range(job.config.members)]


def ensemble_result(
    task: Task, job: Job, outcomes: Sequence[Outcome], score: Callable[[nn.Module], dict[str, Any]] | None = None
) -> Outcome:
    """The result of an ensemble from those of its networks; a single one has its own.

    ``score`` gives the scores of a model where the task has only some of the nodes.
    """
    if len(outcomes) == 1:
        return outcomes[0]
    members = [outcome for outcome in outcomes if isinstance(outcome, RunResult)]
    if len(members) < len(outcomes):
        return next(outcome for outcome in outcomes if isinstance(outcome, DivergedError))
    state = {f"members.{i}.{name}": value for i, one in enumerate(members) for name, value in one.state.items()}
    model = task.example(job.config)
    model.load_state_dict(state)
    model.to(task.y.device)
    with Layout.of(task, job.config).limit():
        scores = score(model) if score else evaluate(model, task.inputs, task.y, job.split, task.metric)
    return RunResult(
        seed=job.seed,
        epochs=sum(member.epochs for member in members),
        best_epoch=members[0].best_epoch,
        **scores,
        restarts=sum(member.restarts for member in members),
        seconds=sum(member.seconds for member in members),
        history=joined_history(members),
        state=state,
    )


def train_runs(
    task: Task,
    runs: Sequence[Run],
    at_once: int | None = None,
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
    make_program: MakeProgram | None = None,
    paused: Callable[[Run], bool] = lambda run: False,
    snapshots: dict[int, State] | None = None,
) -> Iterator[tuple[int, Run]]:
    """Trains runs to their end, and yields each with its position when it is finished.

    Runs that can be stacked are, up to ``at_once`` of them. One that ends leaves its place to the next. How they are
    trained (``make_program``) is chosen by the settings; the other arguments are those of :func:`train_jobs`.

    ``paused`` is called after every epoch and says whether a run should stop for now. Its snapshot is then left in
    ``snapshots``, by position; with it a later call continues the run as if it had never stopped.
    """
    snapshots = {} if snapshots is None else snapshots
    with ExitStack() as resources:
        if checkpointer:
            resources.enter_context(checkpointer)
            snapshots |= checkpointer.restore(checkpointer.load(), runs)
            _check_best_states(task, runs)
        yield from ((i, run) for i, run in enumerate(runs) if run.finished)
        waiting = [i for i, run in enumerate(runs) if not run.finished and not paused(run)]
        config, room = runs[0].job.config, 1
        stacks = make_program is None and task.stacks(config)
        layout = Layout.of(task, config, stacks)
        if waiting:
            log.info(layout.sentence())
        if stacks:
            _check_settings([run.job.config for run in runs])
            room = layout.room(at_once) or len(runs)
        if layout.lanes > 1:
            executor = resources.enter_context(ThreadPoolExecutor(layout.lanes))
            make_program = partial(ProgramGroup, lanes=layout.lanes, executor=executor)
        elif make_program is None:
            make_program = Program
        while waiting:
            active = waiting[:room]
            with layout.limit():
                own = {i: snapshots.pop(i, None) for i in active}
                program = make_program(task, [runs[i] for i in active], list(own.values()))
                _train_until_runs_end(program, runs, active, snapshots, progress, checkpointer, paused)
            waiting = [i for i in waiting if not runs[i].finished and not paused(runs[i])]
            for i in active:
                if runs[i].finished:
                    yield i, runs[i]
            if checkpointer and checkpointer.asked and waiting:
                _save(checkpointer, runs, snapshots)


def _train_until_runs_end(
    program: Program | ProgramGroup,
    runs: Sequence[Run],
    active: Sequence[int],
    snapshots: dict[int, State],
    progress: Progress | None,
    checkpointer: Checkpointer | None,
    paused: Callable[[Run], bool],
) -> None:
    """Trains the runs of a program until enough of them have ended their attempt or are paused.

    Adds snapshots of all whose attempt has not ended.
    """
    clock = time.perf_counter()
    epochs = epochs_of(program) if isinstance(program, Program) else program
    running = [row for row, run in enumerate(program.runs) if not run.attempt_ended]
    while running and not _recompose(program, sum(not paused(program.runs[row]) for row in running)):
        limit = min(run.job.config.epochs - run.epoch for run in (program.runs[row] for row in running))
        done = epochs.run(limit)
        epochs.keep(_advance(program.runs, running, done, progress))
        clock = _share_time(clock, [program.runs[row] for row in running])
        running = [row for row in running if not program.runs[row].attempt_ended]
        if checkpointer and checkpointer.due(len(done)) and running:
            current = {i: program.snapshot(row) for row, i in enumerate(active)}
            _save(checkpointer, runs, snapshots | current)
    del epochs  # its memory first, then that of the next
    snapshots |= {active[row]: program.snapshot(row) for row in running}
    ended = [row for row in range(len(active)) if row not in running]
    _end_attempts(program, ended)
    _share_time(clock, [program.runs[row] for row in ended])


def _check_best_states(task: Task, runs: Sequence[Run]) -> None:
    """Refuses the weights of earlier attempts, or of finished runs, if they are those of another model."""
    resumed = [run for run in runs if run.best is not None or run.best_state]
    if resumed:
        own = shapes(task.example(resumed[0].job.config).state_dict())
        if not all(shapes(run.best_state) == (own if run.best is not None else {}) for run in resumed):
            raise other_model()


def _check_settings(configs: Sequence[TrainConfig]) -> None:
    first, *others = (config.to_dict() for config in configs)
    differing = [key for key in first if key not in OWN_SETTINGS and any(own[key] != first[key] for own in others)]
    if differing:
        raise AsgatError(
            "Runs that are stacked may differ in lr, weight_decay and dropout only, but these differ in "
            f"{', '.join(differing)}; train them one after the other."
        )


def _advance(
    runs: Sequence[Run], running: Sequence[int], done: Sequence[Sequence[Any]], progress: Progress | None
) -> dict[int, int]:
    """Gives every run the figures of its epochs; returns those with new weights to keep, and after which epoch."""
    better: dict[int, int] = {}
    for position, figures in enumerate(done):
        for row in running:
            run = runs[row]
            if run.attempt_ended:
                continue
            if run.update(*figures[row]):
                better[row] = position
            if progress and not run.attempt_diverged:
                progress(run.job, run.history[-1])
    return better


def _recompose(program: Program | ProgramGroup, running: int) -> bool:
    """Whether to go on with a new program of the runs that are left; on CUDA that must be recorded again."""
    return running <= len(program.runs) / 2 if program.capturable else running < len(program.runs)


def _share_time(clock: float, runs: Sequence[Run]) -> float:
    """Divides the time since ``clock`` among runs; returns the time."""
    now = time.perf_counter()
    for run in runs:
        run.seconds += (now - clock) / len(runs)
    return now


def _end_attempts(program: Program | ProgramGroup, rows: Sequence[int]) -> None:
    sound = [row for row in rows if not program.runs[row].attempt_diverged]
    scores = dict(zip(sound, program.scores(sound), strict=True)) if sound else {}
    for row in rows:
        state = {name: value.cpu().clone() for name, value in program.kept[row].items()}
        program.runs[row].end_attempt(scores.get(row), state)


def _save(checkpointer: Checkpointer, runs: Sequence[Run], snapshots: dict[int, State]) -> None:
    """Saves every run that has begun and whose result was not returned yet."""
    begun = [(run, snapshots.get(i, {})) for i, run in enumerate(runs) if run.finished or run.history or i in snapshots]
    checkpointer.save([(run, snapshot) for run, snapshot in begun if not run.reported])
