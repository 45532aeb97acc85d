"""Many runs of one architecture, trained as one tensor program."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from asgat.available_memory import available_memory
from asgat.config import ASGATConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.nn.asgat import ASGAT
from asgat.nn.memory_plan import plan
from asgat.nn.registry import ModelSpec, model_spec
from asgat.nn.stacked_asgat import StackedASGAT
from asgat.spectral import SpectralOperator
from asgat.tables.candidate_table import Progress
from asgat.training.batched_step import BatchedStep, CapturedBatch, EagerBatch, Job
from asgat.training.early_stopping import EarlyStopping
from asgat.training.memory import keep_freed_memory
from asgat.training.runner import (
    certified_figures,
    fallback_figures,
    make_inputs,
    peak_memory_mb,
    run_split,
    summarise,
)
from asgat.training.trainer import (
    DivergedError,
    Epoch,
    RunResult,
    hopeless_score,
    joined,
    judge,
    member_seed,
    seed_of,
    train,
)

FREE = ("lr", "weight_decay", "dropout")  # what the runs of a batch may differ in, beside split and seed
Outcome = RunResult | DivergedError


def run_batched(
    dataset: Dataset,
    model: str,
    configs: Sequence[TrainConfig],
    runs: Sequence[int] = range(10),
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
    building: Progress | None = None,
) -> list[dict[str, Any]]:
    """Trains a model with several configurations on the given runs of a data set, all together.

    Returns a result like :func:`~asgat.training.runner.run`'s for each configuration, and on the CPU the same figures,
    up to rounding. Models other than ASGAT, and rational scores, are trained one after the other.

    A configuration of which a run diverges at every attempt lacks that run and is not ``finished``; the error is raised
    if there is no other configuration.

    Args:
        dataset: the data.
        model: its name in the registry.
        configs: its settings, which may differ in lr, weight_decay and dropout.
        runs: which runs, as for ``run``.
        seed: of the first run.
        device: where to train.
        progress: called with the runs finished and the runs in all.
        building: called with the rows done and in all while a table is built.
    """
    device = torch.device(device)
    check_configs(configs)
    spec = model_spec(model)
    splits = {i: run_split(dataset, i) for i in runs}
    y = torch.from_numpy(dataset.y).to(device)
    inputs = make_inputs(dataset, model, configs[0], device, building)
    keep_freed_memory()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)

    def build(config: TrainConfig) -> nn.Module:
        return spec.make(config, dataset.num_features, dataset.num_classes, dataset.num_nodes)

    several = len(dataset.splits) > 1
    places = list(product(range(len(configs)), runs))
    jobs = [Job(splits[i], seed if several else seed + i, configs[number]) for number, i in places]
    at_once = runs_at_once(dataset, configs[0], device)
    rows: list[list[dict[str, Any]]] = [[] for _ in configs]
    for place, outcome in iter_batched(build, inputs, y, jobs, dataset.metric, at_once, progress):
        number, i = places[place]
        if isinstance(outcome, DivergedError):
            if len(configs) == 1:
                raise outcome
            continue
        row = {"run": i, **{k: v for k, v in vars(outcome).items() if k not in ("history", "state")}}
        row.update(certified_figures(spec, configs[number], dataset, inputs, y, splits[i], outcome.state))
        row["fallback"] = fallback_figures(inputs)
        row["peak_memory_mb"] = peak_memory_mb(device)
        rows[number].append(row)
    settings = {
        "dataset": dataset.name,
        "model": model,
        "protocol": dataset.protocol,
        "seed": seed,
        "runs": list(runs),
    }
    return [
        summarise({**settings, "config": config.to_dict()}, dataset, own)
        for config, own in zip(configs, rows, strict=True)
    ]


def together(
    dataset: Dataset,
    spec: ModelSpec,
    config: TrainConfig,
    inputs: tuple[Any, ...],
    y: Tensor,
    splits: dict[int, Split],
    seeds: dict[int, int],
    progress: Progress | None = None,
) -> Iterator[tuple[int, RunResult]]:
    """The runs of one configuration and what they came to, for :func:`asgat.training.runner.run`.

    Raises:
        DivergedError: a run diverged at every attempt.
    """
    jobs = [Job(splits[i], seeds[i], config) for i in splits]

    def build(own: TrainConfig) -> nn.Module:
        return spec.make(own, dataset.num_features, dataset.num_classes, dataset.num_nodes)

    at_once = runs_at_once(dataset, config, y.device)
    for place, outcome in iter_batched(build, inputs, y, jobs, dataset.metric, at_once, progress):
        if isinstance(outcome, DivergedError):
            raise outcome
        yield list(splits)[place], outcome


def train_batched(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    jobs: Sequence[Job],
    metric: str = "micro_f1",
    at_once: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """What :func:`~asgat.training.trainer.train` comes to for every job: its result, or the error where it diverged.

    Each run has its own weights, random stream, early stopping and restarts, and leaves the batch when it is done. In
    double precision its losses are those of the single run up to rounding; on CUDA too the runs draw what they draw on
    the CPU. ``seconds`` of a run is its share of the batch's.

    Args:
        build: makes the model for some settings; called once per attempt, after seeding.
        inputs: what the model's ``forward`` takes, features first.
        y: labels of all nodes.
        jobs: the runs; their settings may differ in lr, weight_decay and dropout.
        metric: ``"micro_f1"`` or ``"roc_auc"``, the validation score.
        at_once: runs in one batch at most; all of them by default.
        progress: called with the runs finished and the runs in all.
    """
    check_configs([job.config for job in jobs])
    outcomes = dict(iter_batched(build, inputs, y, jobs, metric, at_once, progress))
    return [outcomes[place] for place in range(len(jobs))]


def check_configs(configs: Sequence[TrainConfig]) -> None:
    """Refuses settings that cannot be trained in one batch."""
    if not configs:
        raise AsgatError("There is no configuration to train; give at least one.")
    first = configs[0].to_dict()
    for config in configs[1:]:
        other = config.to_dict()
        differing = [key for key in first.keys() | other.keys() if first.get(key) != other.get(key)]
        wrong = sorted(set(differing) - set(FREE))
        if wrong or type(config) is not type(configs[0]):
            raise AsgatError(
                f"Configurations trained together may differ in {', '.join(FREE)} only, but these differ in "
                f"{', '.join(wrong) or 'their model'}; train them one after the other."
            )


def runs_at_once(dataset: Dataset, config: TrainConfig, device: torch.device) -> int | None:
    """How many runs fit half of the free memory together; None where any number does, or nobody knows."""
    free = available_memory(device)
    if free is None or not isinstance(config, ASGATConfig):
        return None
    parts = plan(dataset.graph, config, device, sample=False).parts
    weights = sum((dataset.num_features + dataset.num_nodes * config.adjacency, config.heads * config.hidden))
    weights *= config.hidden * (1 + config.heads * config.root) * 4
    each = parts["attention"] + parts["features"] + (CapturedBatch.chunk + 6) * weights
    return max(1, free // 2 // max(each, 1))


def iter_batched(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    jobs: Sequence[Job],
    metric: str,
    at_once: int | None,
    progress: Progress | None,
) -> Iterator[tuple[int, Outcome]]:
    """The places of jobs and their outcomes, as they become known; see :func:`train_batched`.

    The members of committees are trained together too.
    """
    count = getattr(jobs[0].config, "members", 1)
    if count == 1:
        yield from _iter_single(build, inputs, y, jobs, metric, at_once, progress)
        return
    members = [
        Job(job.split, member_seed(job.seed, i), job.config.replace(members=1)) for job in jobs for i in range(count)
    ]
    known: dict[int, Outcome] = {}
    for place, outcome in _iter_single(build, inputs, y, members, metric, at_once, progress):
        known[place] = outcome
        whole = place // count
        places = range(whole * count, (whole + 1) * count)
        if not all(i in known for i in places):
            continue
        own = [known.pop(i) for i in places]
        failed = next((one for one in own if isinstance(one, DivergedError)), None)
        job, done = jobs[whole], [one for one in own if isinstance(one, RunResult)]
        yield whole, failed or joined(build(job.config), done, inputs, y, job.split, metric)


def _iter_single(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    jobs: Sequence[Job],
    metric: str,
    at_once: int | None,
    progress: Progress | None,
) -> Iterator[tuple[int, Outcome]]:
    meter = _Meter(len(jobs), progress)
    operator = inputs[1] if len(inputs) == 2 else None
    alone = any(getattr(operator, name, False) for name in ("records_fallbacks", "exact_sums"))
    stackable = isinstance(operator, SpectralOperator) and not alone
    if not stackable or not StackedASGAT.serves(build(jobs[0].config)):
        for place, job in enumerate(jobs):
            try:
                config = job.config
                yield place, train(lambda: build(config), inputs, y, job.split, config, job.seed, metric)  # noqa: B023
            except DivergedError as error:
                yield place, error
            meter.add()
        return
    labels = y.cpu().numpy()
    runs = [_Run(place, job, hopeless_score(labels, job.split, metric)) for place, job in enumerate(jobs)]
    runs.sort(key=lambda run: (run.job.config.lr, run.job.config.weight_decay))  # stable
    most = jobs[0].config.max_restarts
    for attempt in range(most + 1):
        for start in range(0, len(runs), at_once or len(runs)):
            batch = runs[start : start + (at_once or len(runs))]
            _attempt(build, inputs, y, batch, attempt, metric, meter)
            for run in batch:
                if run.settled or attempt == most:
                    yield run.place, run.outcome(attempt)
        runs = [run for run in runs if not run.settled]
        if not runs:
            break
    meter.finish()


class _Meter:
    """Counts finished runs."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total)

    def finish(self) -> None:
        if self.progress and self.done < self.total:
            self.progress(self.total, self.total)


class _Run:
    """A job and what its attempts have come to."""

    def __init__(self, place: int, job: Job, hopeless: float) -> None:
        self.place, self.job, self.hopeless = place, job, hopeless
        self.history: list[Epoch] = []
        self.seconds = 0.0
        self.best: dict[str, Any] | None = None
        self.diverged: DivergedError | None = None

    def begin(self) -> None:
        self.stopping = EarlyStopping(self.job.config.patience)
        self.best_epoch, self.over, self.failed = 0, False, False

    def update(self, attempt: int, epoch: int, train_loss: float, val_loss: float, val_score: float) -> bool:
        """Takes an epoch's figures; true if this is now the epoch that counts."""
        if not math.isfinite(train_loss + val_loss):
            self.diverged = DivergedError(epoch, train_loss, val_loss, self.job.config.lr)
            self.over = self.failed = True
            return False
        self.history.append(Epoch(attempt, epoch, train_loss, val_loss, val_score))
        kept = self.stopping.update(val_loss, val_score)
        if kept:
            self.best_epoch, self.kept_score = epoch, val_score
        self.over = self.stopping.stop
        return kept

    def take(self, figures: dict[str, Any], state: dict[str, Tensor]) -> None:
        """The figures of an attempt that came to its end; the best one counts."""
        if self.best is None or figures["val_score"] > self.best["val_score"]:
            self.best = {**figures, "best_epoch": self.best_epoch, "state": state}

    def good(self, val_score: float) -> bool:
        return val_score > self.hopeless or val_score == 1.0

    @property
    def settled(self) -> bool:
        return self.best is not None and self.good(self.best["val_score"])

    def outcome(self, restarts: int) -> Outcome:
        if self.best is None:
            assert self.diverged is not None
            return self.diverged
        return RunResult(
            seed=self.job.seed,
            epochs=len(self.history),
            restarts=restarts,
            seconds=self.seconds,
            history=self.history,
            **self.best,
        )


def _attempt(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    runs: Sequence[_Run],
    attempt: int,
    metric: str,
    meter: _Meter,
) -> None:
    clock = time.perf_counter()
    step = _start(build, inputs, y, runs, attempt, metric)
    captured = y.is_cuda and metric != "roc_auc" and step.model.operator.capturable
    epochs = CapturedBatch(step) if captured else EagerBatch(step)
    kept = {name: value.detach().clone() for name, value in step.model.state.items()}
    row_of = {id(run): row for row, run in enumerate(runs)}
    running, config = list(runs), runs[0].job.config
    epoch = 0
    while epoch < config.epochs and not all(run.over for run in running):
        better: dict[int, int] = {}
        alive = [run for run in running if not run.over]
        for position, figures in enumerate(epochs.run(config.epochs - epoch)):
            epoch += 1
            for row, run in enumerate(running):
                if not run.over and run.update(attempt, epoch, *figures[row]):
                    better[row] = position
        if better:
            rows = torch.tensor([row_of[id(running[row])] for row in better], device=y.device)
            for name, value in epochs.weights(list(better), list(better.values())).items():
                kept[name].index_copy_(0, rows, value)
        clock = _share(clock, alive)
        left = [row for row, run in enumerate(running) if not run.over]
        for run in alive:
            if run.over and not run.failed and run.good(run.kept_score):
                meter.add()
        # A smaller batch is recorded anew on CUDA, which has to be worth it.
        if left and len(left) <= len(running) * (0.5 if captured else 0.9):
            step = step.select(left)
            del epochs  # its memory first, then that of the next
            epochs = CapturedBatch(step) if captured else EagerBatch(step)
            running = [running[row] for row in left]
    del epochs
    ended = [row for row, run in enumerate(runs) if not run.failed]
    if ended:
        state = {name: value[ended] for name, value in kept.items()}
        model = StackedASGAT(step.model.form, state, inputs[0], inputs[1], [0.0] * len(ended))
        with torch.no_grad():
            logits = model()
        host = {name: value.cpu() for name, value in state.items()}
        for place, row in enumerate(ended):
            judged = judge(logits[place], y, runs[row].job.split, metric)
            runs[row].take(judged, {name: value[place].clone() for name, value in host.items()})
    _share(clock, runs)


def _start(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    runs: Sequence[_Run],
    attempt: int,
    metric: str,
) -> BatchedStep:
    """The runs' models as each would be built alone, and the streams their dropout is drawn from."""
    states, streams = [], []
    for run in runs:
        run.begin()
        torch.manual_seed(seed_of(run.job.seed, attempt))
        model = build(run.job.config)
        states.append(model.state_dict(keep_vars=True))
        streams.append(torch.Generator().set_state(torch.get_rng_state()))
    state = {
        name: torch.stack([own[name].detach() for own in states]).to(y.device).requires_grad_(value.requires_grad)
        for name, value in states[0].items()
    }
    assert isinstance(model, ASGAT)
    return BatchedStep(model, state, streams, inputs, y, [run.job for run in runs], metric)


def _share(clock: float, runs: Sequence[_Run]) -> float:
    """Divides the time since ``clock`` among some runs; returns the time."""
    now = time.perf_counter()
    for run in runs:
        run.seconds += (now - clock) / len(runs)
    return now
