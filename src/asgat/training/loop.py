"""The training loop: every run of every command goes through it."""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.threads import thread_limit
from asgat.training.checkpoint import Checkpointer
from asgat.training.epoch_threads import epoch_threads, threads_sentence
from asgat.training.objective import evaluate
from asgat.training.program import Figures, Program, Task, epochs_of, other_model, shapes
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
Progress = Callable[[Job, Epoch], None]
MakeProgram = Callable[[Task, Run, State | None], Program]


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
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
) -> Generator[tuple[int, Outcome], None, None]:
    """Positions of jobs and their results, as they become known.

    The networks of an ensemble (``members`` above 1) are trained as runs of their own, each stopped when it is best
    itself; their probabilities are averaged.

    Args:
        task: what the jobs share.
        jobs: trained one after the other.
        progress: called with the job and every epoch.
        checkpointer: saves unfinished runs, and has those of an earlier start.
    """
    members = [(position, member) for position, job in enumerate(jobs) for member in members_of(job)]
    labels = task.y.cpu().numpy()
    runs = [Run(member, baseline_score(labels, member.split, task.metric)) for _, member in members]
    for index, _ in train_runs(task, runs, progress, checkpointer):
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
    with thread_limit(epoch_threads(task, job.config)):
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
    progress: Progress | None = None,
    checkpointer: Checkpointer | None = None,
    make_program: MakeProgram = Program,
    paused: Callable[[Run], bool] = lambda run: False,
    snapshots: dict[int, State] | None = None,
) -> Iterator[tuple[int, Run]]:
    """Trains runs to their end, one after the other, and yields each with its position when it is finished.

    ``make_program`` says how an epoch is computed; the other arguments are those of :func:`train_jobs`.

    ``paused`` is called after every epoch and says whether a run should stop for now. Its snapshot is then left in
    ``snapshots``, by position; with it a later call continues the run as if it had never stopped.
    """
    snapshots = {} if snapshots is None else snapshots
    with checkpointer or nullcontext():
        if checkpointer:
            snapshots |= checkpointer.restore(checkpointer.load(), runs)
            _check_best_states(task, runs)
        yield from ((i, run) for i, run in enumerate(runs) if run.finished)
        config = runs[0].job.config
        threads = epoch_threads(task, config)
        waiting = [i for i, run in enumerate(runs) if not run.finished and not paused(run)]
        if waiting:
            log.info(threads_sentence(threads))
        for i in waiting:
            while not runs[i].finished and not paused(runs[i]):
                with thread_limit(threads):
                    program = make_program(task, runs[i], snapshots.pop(i, None))
                    _train_attempt(program, i, runs, snapshots, progress, checkpointer, paused)
                    del program  # its memory before that of the next
                if runs[i].finished:
                    yield i, runs[i]
                if checkpointer and checkpointer.asked and not all(run.finished for run in runs):
                    _save(checkpointer, runs, snapshots)


def _train_attempt(
    program: Program,
    place: int,
    runs: Sequence[Run],
    snapshots: dict[int, State],
    progress: Progress | None,
    checkpointer: Checkpointer | None,
    paused: Callable[[Run], bool],
) -> None:
    """Trains a program until its run has ended the attempt, or is paused: then ``snapshots`` gets its snapshot."""
    run, clock, epochs = program.run, time.perf_counter(), epochs_of(program)
    while not run.attempt_ended and not paused(run):
        done = epochs.run(run.job.config.epochs - run.epoch)
        better = _advance(run, done, progress)
        if better is not None:
            epochs.keep(better)
        clock = _add_time(run, clock)
        if checkpointer and checkpointer.due(len(done)) and not run.attempt_ended:
            _save(checkpointer, runs, snapshots | {place: program.snapshot()})
    del epochs  # its memory first, then that of the next
    if run.attempt_ended:
        scores = None if run.attempt_diverged else program.scores()
        run.end_attempt(scores, {name: value.cpu().clone() for name, value in program.kept.items()})
    else:
        snapshots[place] = program.snapshot()
    _add_time(run, clock)


def _advance(run: Run, done: Sequence[Figures], progress: Progress | None) -> int | None:
    """Gives a run the figures of its epochs; returns the last one whose weights are to be kept."""
    better = None
    for position, figures in enumerate(done):
        if run.attempt_ended:
            break
        if run.update(*figures):
            better = position
        if progress and not run.attempt_diverged:
            progress(run.job, run.history[-1])
    return better


def _add_time(run: Run, clock: float) -> float:
    """Counts the time since ``clock``; returns the time."""
    now = time.perf_counter()
    run.seconds += now - clock
    return now


def _check_best_states(task: Task, runs: Sequence[Run]) -> None:
    """Refuses the weights of earlier attempts, or of finished runs, if they are those of another model."""
    resumed = [run for run in runs if run.best is not None or run.best_state]
    if resumed:
        own = shapes(task.example(resumed[0].job.config).state_dict())
        if not all(shapes(run.best_state) == (own if run.best is not None else {}) for run in resumed):
            raise other_model()


def _save(checkpointer: Checkpointer, runs: Sequence[Run], snapshots: dict[int, State]) -> None:
    """Saves every run that has begun and whose result was not returned yet."""
    begun = [(run, snapshots.get(i, {})) for i, run in enumerate(runs) if run.finished or run.history or i in snapshots]
    checkpointer.save([(run, snapshot) for run, snapshot in begun if not run.reported])
