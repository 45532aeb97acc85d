"""Training divided among ranks: each owns a block of nodes, and all of them take the steps of one process."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Split
from asgat.distributed.process_group import Group
from asgat.distributed.shard import Shard, Source, build_shard
from asgat.errors import AsgatError
from asgat.nn.attention_model import AttentionModel
from asgat.nn.memory_plan import computes_in_blocks
from asgat.nn.registry import model_spec
from asgat.training.checkpoint import Checkpointer, decode
from asgat.training.loop import ensemble_result, members_of, train_runs
from asgat.training.metrics import roc_auc
from asgat.training.objective import class_weights, share
from asgat.training.program import Program, Task
from asgat.training.result import describe_settings, result_row, summarise
from asgat.training.run_directory import RunDirectory
from asgat.training.run_state import DivergedError, Epoch, Job, Run, State, run_seed
from asgat.training.runner import Callbacks, model_metadata, model_sizes, split_number

EVERY = 5  # epochs between checkpoints


def run_distributed(
    source: Source,
    model: str,
    config: TrainConfig,
    group: Group,
    runs: Sequence[int] = range(10),
    seed: int = 0,
    out: Path | str | None = None,
    fresh: bool = False,
    callbacks: Callbacks | None = None,
    say: Callable[[str], None] | None = None,  # called by rank 0 when a run resumes from a checkpoint
    every: int = EVERY,
    dtype: torch.dtype = torch.float32,  # of features and weights
) -> dict[str, Any]:
    """What :func:`asgat.training.runner.run` does, by all ranks of a group.

    Losses and weights are those of a single process up to rounding, but for the random numbers of dropout, which every
    rank draws for its own nodes. Rank 0 writes the run directory, and every few epochs a checkpoint into it, from which
    any number of ranks can resume.
    """
    callbacks, runs = callbacks or Callbacks(), list(dict.fromkeys(runs))
    for i in runs:
        split_number(source.name, i, source.num_splits)
    settings: dict[str, Any] = group.from_first(
        lambda: describe_settings(source.name, model, source.protocol, seed, runs, config, source.digest())
    )
    directory = RunDirectory(out) if out is not None else None
    checkpointer = None
    if out is not None:
        checkpointer = RankCheckpointer(out, group.device.type, settings["data"], epochs=every, writes=group.first)
        group.lost_rank.remedy = (
            "relaunch the same command, with any number of ranks, and it goes on from the last checkpoint"
        )

    def begin() -> tuple[list[dict[str, Any]], bytes | None]:
        done = directory.begin(settings, fresh) if directory else []
        return done, checkpointer.read() if checkpointer and len(done) < len(runs) else None

    done, content = group.from_first(begin)
    if checkpointer:
        checkpointer.content = content
    missing = [i for i in runs if i not in {row["run"] for row in done}]
    history: list[Any] = []
    if missing:
        group.lost_rank.status = "the table was built"
        started = time.perf_counter()
        shard = build_shard(source, model, config, group, dtype, callbacks.building if group.first else None)
        ranks = {"build_s": time.perf_counter() - started, **shard.figures()}
        if callbacks.built:
            assert isinstance(config, SpectralConfig)
            bounded = computes_in_blocks(config, len(shard.y), group.device)
            callbacks.built(shard.step_bytes(config), processes=group.on_machine, bounded=bounded)

    def build(own: TrainConfig) -> nn.Module:
        return model_spec(model).make(own, *model_sizes(source).values()).to(dtype)

    def progress(job: Job, epoch: Epoch) -> None:
        if callbacks.progress and group.first:
            callbacks.progress(job.run, epoch)

    for i in missing:
        split = source.split(split_number(source.name, i, source.num_splits), shard.first, shard.last)
        job = Job(split, run_seed(seed, i, source.num_splits), config, i)
        part = ShardSplit(shard, split, source, group, config)
        task = Task(build, (shard.x, shard.operator), shard.y, source.metric)
        members = [Run(member, part.baseline) for member in members_of(job)]
        times: list[float] = []
        make = partial(ShardedProgram, part=part, times=times, say=say if group.first else None)
        for _ in train_runs(task, members, progress, checkpointer, make):
            pass
        outcome = ensemble_result(task, job, [run.outcome() for run in members], part.evaluate)
        if isinstance(outcome, DivergedError):
            raise outcome
        epoch_s = statistics.median(times[2:] or times or [0.0])  # the first ones compile
        certified = part.certified_figures(build(config), outcome.state)
        row = result_row(i, {**outcome.figures(), "epoch_s": epoch_s, **certified}, group.device)
        row["ranks"] = group.gather({**ranks, "peak_memory_mb": row["peak_memory_mb"]})
        row["peak_memory_mb"] = sum(rank["peak_memory_mb"] for rank in row["ranks"])
        if directory and group.first:
            directory.add_run(row, outcome.history, done, outcome.state, model_metadata(settings, i, source))
        done.append(row)
        if directory and group.first:
            directory.write_result(summarise(settings, source.metric, done))
        history = [vars(epoch) for epoch in outcome.history]
    if checkpointer and group.first:
        checkpointer.remove()
    return {**summarise(settings, source.metric, done), "history": history}


class RankCheckpointer(Checkpointer):
    """A checkpointer of which rank 0 alone reads and ``writes``; Ctrl-C ends a rank as it ends any process."""

    def __init__(self, folder: Path | str, device: str, data: str, epochs: int, writes: bool) -> None:
        super().__init__(folder, device, data, epochs=epochs)
        self.writes = writes
        self.content: bytes | None = None  # of the file as rank 0 read it, for the first run that is trained

    def __enter__(self) -> Self:
        return self

    def read(self) -> bytes | None:
        """The content of the file, on rank 0; it is refused there, so that one rank reports it."""
        content = super().load()
        if content is not None:
            decode(content, self.path, self.device, self.data)
        return content

    def load(self) -> bytes | None:
        content, self.content = self.content, None
        return content

    def due(self, epochs: int = 1) -> bool:
        return self.writes and super().due(epochs)


class ShardSplit:
    """The nodes of one rank that a run trains, validates and tests on, and their number over all ranks."""

    def __init__(self, shard: Shard, split: Split, source: Source, group: Group, config: TrainConfig) -> None:
        self.shard, self.group, self.metric, self.num_classes = shard, group, source.metric, source.num_classes
        self.nodes = {name: torch.from_numpy(part).to(group.device) for name, part in split.parts().items()}
        self.labels = {name: shard.y[nodes] for name, nodes in self.nodes.items()}
        counts = torch.stack([torch.bincount(y, minlength=self.num_classes) for y in self.labels.values()])
        group.sum(counts)
        self.totals = dict(zip(self.labels, counts.sum(dim=1).tolist(), strict=True))
        for name, total in self.totals.items():
            if not total:
                raise AsgatError(f"The split has no {name} nodes; training, choosing and reporting need some of each.")
        if self.metric == "roc_auc" and int((counts[1:] > 0).sum()) < 4:
            raise AsgatError("The validation or test nodes are of one class; roc_auc is not defined. Use micro_f1.")
        self.weight = class_weights(counts[0], config.balance) if config.balanced else None  # in the training loss
        majority = int(counts[0].argmax())
        self.baseline = 0.5 if self.metric == "roc_auc" else int(counts[1, majority]) / self.totals["val"]

    def loss(self, logits: Tensor, name: str) -> Tensor:
        """This rank's share of the mean loss of a part of the split."""
        chosen, labels = logits.index_select(0, self.nodes[name]), self.labels[name]
        if self.weight is not None and name == "train":
            return F.cross_entropy(chosen, labels, reduction="none") @ self.weight[labels].to(chosen.dtype)
        loss: Tensor = F.cross_entropy(chosen, labels, reduction="sum") / self.totals[name]
        return loss

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Validation loss and score over all ranks. Counts are summed before they are divided, which is exact."""
        right = (logits.index_select(0, self.nodes["val"]).argmax(-1) == self.labels["val"]).sum()
        loss, count = self.group.sum(torch.stack([self.loss(logits, "val").double(), right.double()])).unbind()
        if self.metric == "roc_auc":
            return loss, self.area(logits, "val").to(loss.device)
        return loss, share(count, self.totals["val"])

    def area(self, logits: Tensor, name: str) -> Tensor:
        """ROC-AUC of a part of the split over all ranks."""
        chosen = torch.nan_to_num(logits.index_select(0, self.nodes[name]).double())
        own = (chosen[:, 1] - chosen[:, 0]).cpu().numpy(), self.labels[name].cpu().numpy()
        margin, labels = (np.concatenate(column) for column in zip(*self.group.gather(own), strict=True))
        return roc_auc(torch.from_numpy(labels), torch.from_numpy(margin))

    def scores(self, logits: Tensor) -> dict[str, Any]:
        """What a run is scored by, from counts that ranks add up."""
        val_loss, val_score = self.validate(logits)
        prediction, classes = logits.index_select(0, self.nodes["test"]).argmax(-1), self.num_classes
        counts = self.group.sum(torch.bincount(self.labels["test"] * classes + prediction, minlength=classes**2))
        micro, macro = scores_from_counts(counts.cpu().numpy().reshape(classes, classes))
        return {
            "val_loss": float(val_loss),
            "val_score": float(val_score),
            "micro_f1": micro,
            "macro_f1": macro,
            "roc_auc": self.area(logits, "test").item() if self.metric == "roc_auc" else None,
        }

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, Any]:
        """:meth:`scores` of the model's logits."""
        return self.scores(model.eval()(self.shard.x, self.shard.operator))

    @torch.no_grad()
    def certified_figures(self, model: nn.Module, state: State) -> dict[str, Any]:
        """How far the attention can be from the paper's, where the table's rows are proven; nothing otherwise."""
        table = self.shard.operator.table
        if not isinstance(model, AttentionModel) or not model.convs or table is None or not table.exact:
            return {}
        model.to(self.group.device).load_state_dict(state)
        certificates = model.certificates(self.shard.operator)
        sums = [[float(c.bound.double().sum()), float(c.exact.sum()), c.bound.numel()] for c in certificates]
        total = self.group.sum(torch.tensor(sums, dtype=torch.float64, device=self.group.device)).cpu()
        largest = max((float(c.bound.max()) for c in certificates if c.bound.numel()), default=0.0)
        return {
            "certified_share": float((total[:, 1] / total[:, 2]).mean()),
            "mean_bound": float((total[:, 0] / total[:, 2]).mean()),
            "max_bound": max(self.group.gather(largest)),
        }


class ShardedProgram(Program):
    """One run on one rank: losses, scores and gradients are summed over the ranks; ``times`` gets those of epochs."""

    capturable = False

    def __init__(
        self,
        task: Task,
        run: Run,
        snapshot: State | None,
        part: ShardSplit,
        times: list[float],
        say: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(task, run, snapshot)
        self.part, self.group, self.times = part, part.group, times
        if say and snapshot is not None:
            say(f"Run {self.run.job.run} goes on after epoch {self.run.epoch}, from its checkpoint.")

    def epoch(self) -> Tensor:
        started = time.perf_counter()
        self.group.lost_rank.status = f"epoch {self.run.epoch + 1} of run {self.run.job.run} was computed"
        stream = self.run.seed * 1_000_003 + self.run.epoch + 1
        torch.manual_seed((stream * self.group.size + self.group.rank) % 2**63)  # an epoch repeats after a relaunch
        figures = super().epoch()
        self.times.append(time.perf_counter() - started)
        return figures

    def step(self) -> Tensor:
        self.set_training(True)
        loss = self.part.loss(self.forward(), "train")
        gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        self.adam.step(self.group.sum_gradients(gradients))
        return self.group.sum(loss.detach().double())

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        return self.part.validate(logits)

    @torch.no_grad()
    def scores(self) -> dict[str, Any]:
        self.model.load_state_dict(self.kept)
        return self.part.scores(self.evaluate())

    def snapshot(self) -> State:
        return {name: value for name, value in super().snapshot().items() if not name.startswith("random")}


def scores_from_counts(confusion: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Micro- and macro-F1 from counts [truth, prediction], as :mod:`asgat.training.metrics` has them from labels."""
    right, truth, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    present = (truth + predicted) > 0
    f1 = 2 * right[present] / (truth + predicted)[present]
    return float(right.sum() / confusion.sum()), float(f1.mean())
