"""One model over all runs of a data set: ten splits, or ten seeds where there is one split."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.data.digest import dataset_digest
from asgat.errors import AsgatError
from asgat.files.lock import locked
from asgat.nn.memory_plan import plan
from asgat.nn.registry import model_spec
from asgat.threads import thread_limit
from asgat.training.checkpoint import Checkpointer
from asgat.training.epoch_threads import epoch_threads
from asgat.training.inputs import check_direction, make_inputs
from asgat.training.loop import train_jobs
from asgat.training.program import Task
from asgat.training.result import describe_settings, result_row, run_figures, summarise
from asgat.training.run_directory import RunDirectory
from asgat.training.run_state import DivergedError, Epoch, Job, State, run_seed


@dataclass(frozen=True)
class Callbacks:
    """What a caller wants to know while a model is trained.

    Attributes:
        progress: called with the run and every epoch.
        building: called with the rows done and in all while a candidate table is built.
        built: called with :func:`step_bytes` when everything is ready for the first epoch; by ranks with the other
            arguments of ``asgat.memory.keep_freed_memory``, too.
        finished: called with a run, its weights and the model's inputs before the run counts as done.
        counted: called with the number of runs done and in all.
        waiting: called before waiting for another process that writes the run directory; without it, that is refused.
    """

    progress: Callable[[int, Epoch], None] | None = None
    building: Callable[[int, int], None] | None = None
    built: Callable[..., object] | None = None
    finished: Callable[[int, State, tuple[Any, ...]], None] | None = None
    counted: Callable[[int, int], None] | None = None
    waiting: Callable[[], None] | None = None


def run(
    dataset: Dataset,
    model: str,
    config: TrainConfig,
    runs: Sequence[int] = range(10),
    seed: int = 0,
    device: torch.device | str = "cpu",
    out: Path | str | None = None,
    fresh: bool = False,
    callbacks: Callbacks | None = None,
) -> dict[str, Any]:
    """Trains a model on the given runs of a data set and returns the result as in ``result.json``.

    Run i is split i with seed ``seed``, or, where the data set has a single split, that split with seed ``seed + i``.

    Args:
        dataset, model, config: the data, the model's name in the registry and its settings.
        runs, seed: which runs, and the seed of the first.
        device: where to train.
        out: run directory; finished runs found there are taken over, and an unfinished one is resumed.
        fresh: delete what the run directory holds.
        callbacks: called while models are trained.

    Raises:
        LockedError: another process writes the run directory.
        DivergedError: a run diverged at every attempt.
    """
    callbacks, device = callbacks or Callbacks(), torch.device(device)
    check_direction(dataset, model)  # bad input is refused before anything is written
    splits = {i: run_split(dataset, i) for i in runs}
    with ExitStack() as held:
        if out is not None:
            held.enter_context(locked(out, wait=callbacks.waiting is not None, waiting=callbacks.waiting))
        digest = dataset_digest(dataset)
        settings = describe_settings(dataset.name, model, dataset.protocol, seed, list(splits), config, digest)
        directory = RunDirectory(out) if out is not None else None
        done = directory.begin(settings, fresh) if directory else []
        missing = [i for i in splits if i not in {row["run"] for row in done}]
        checkpointer = Checkpointer(out, device.type, digest) if out is not None else None
        if missing:
            task = make_task(dataset, model, config, device, callbacks.building)
            if callbacks.built:
                callbacks.built(step_bytes(dataset, config, device))
            if checkpointer:
                checkpointer.resumable = task.resumable
            jobs = [Job(splits[i], run_seed(seed, i, len(dataset.splits)), config, i) for i in missing]
            progress = callbacks.progress
            report = None if progress is None else lambda job, epoch: progress(job.run, epoch)
            outcomes = train_jobs(task, jobs, report, checkpointer)
            held.enter_context(closing(outcomes))
            for position, outcome in outcomes:
                if isinstance(outcome, DivergedError):
                    raise outcome
                i = missing[position]
                with thread_limit(epoch_threads(task, config)):
                    figures = run_figures(task, config, splits[i], outcome)
                row = result_row(i, figures, device)
                if callbacks.finished:
                    callbacks.finished(i, outcome.state, task.inputs)
                if directory:
                    directory.add_run(row, outcome.history, done, outcome.state, model_metadata(settings, i, dataset))
                done.append(row)
                if directory:
                    directory.write_result(summarise(settings, dataset.metric, done))
                if callbacks.counted:
                    callbacks.counted(len(done), len(splits))
        if checkpointer:
            checkpointer.remove()
            if checkpointer.asked:  # in the last epoch: everything is saved, and the caller should stop
                raise KeyboardInterrupt
        return summarise(settings, dataset.metric, done)


def make_task(
    dataset: Dataset,
    model: str,
    config: TrainConfig,
    device: torch.device,
    building: Callable[[int, int], None] | None = None,
    inputs: tuple[Any, ...] | None = None,
) -> Task:
    """What the runs of a model on a data set share; builds its inputs, with a candidate table where the model needs
    one, unless they are given."""
    inputs = make_inputs(dataset, model, config, device, building) if inputs is None else inputs
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)

    def build(own: TrainConfig) -> nn.Module:
        return model_spec(model).make(own, *model_sizes(dataset).values())

    return Task(build, inputs, torch.from_numpy(dataset.y).to(device), dataset.metric)


def step_bytes(dataset: Dataset, config: TrainConfig, device: torch.device) -> int:
    """What a training step of one run holds at one time, by the memory plan; 0 where that is not known."""
    if not isinstance(config, SpectralConfig):
        return 0
    parts = plan(dataset.graph, config, device, sample=False).parts
    return parts["attention"] + parts["features"]


def split_number(name: str, run: int, num_splits: int) -> int:
    """The split of a run of a data set: its own, or the only one; refused where there is none."""
    if run < 0 or (num_splits > 1 and run >= num_splits):
        raise AsgatError(f"{name} has splits 0 to {num_splits - 1}; there is no split {run} (--splits).")
    return run if num_splits > 1 else 0


def run_split(dataset: Dataset, i: int) -> Split:
    """The split of run i; refused where it is missing or has nothing to report."""
    split = dataset.splits[split_number(dataset.name, i, len(dataset.splits))]
    test = dataset.y[split.test]
    if not len(test):
        raise AsgatError(f"Split {i} of {dataset.name} has no test nodes; there would be nothing to report.")
    if dataset.metric == "roc_auc" and len(np.unique(test)) < 2:
        raise AsgatError(f"The test nodes of split {i} of {dataset.name} are of one class; use micro_f1.")
    return split


def model_sizes(dataset: Any) -> dict[str, Any]:
    """What the shape of a model depends on apart from its settings, in the order :meth:`ModelSpec.make` takes it."""
    return {
        "in_channels": dataset.num_features,
        "out_channels": dataset.num_classes,
        "num_nodes": dataset.num_nodes,
        "directed": dataset.directed,
    }


def model_metadata(settings: dict[str, Any], run: int, dataset: Any) -> dict[str, Any]:
    """What is written next to the weights of a run."""
    return {**settings, "run": run, **model_sizes(dataset)}
