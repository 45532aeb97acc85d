"""Training divided among ranks: each owns a block of nodes, and together they take the steps of one process."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.distributed.process_group import Group
from asgat.distributed.shard import Shard, Source, build_shard
from asgat.errors import AsgatError, brief
from asgat.files.atomic import write_atomic
from asgat.nn.attention_model import AttentionModel
from asgat.nn.registry import model_spec
from asgat.tables.candidate_table import Progress
from asgat.training.early_stopping import EarlyStopping
from asgat.training.memory import keep_freed_memory
from asgat.training.metrics import roc_auc
from asgat.training.run_directory import RunDirectory
from asgat.training.runner import RunProgress, peak_memory_mb, summarise
from asgat.training.trainer import DivergedError, Epoch, seed_of

CHECKPOINT = "checkpoint.safetensors"
EVERY = 5  # epochs between checkpoints


@dataclass
class State:
    """Where a run is: everything but the weights. Plain values, the same on all ranks."""

    run: int
    attempt: int = 0
    epoch: int = 0
    best_epoch: int = 0
    best_loss: float | None = None
    best_score: float | None = None
    waited: int = 0
    seconds: float = 0.0
    history: list[list[float]] = field(default_factory=list)
    best: dict[str, Any] | None = None  # figures of the best earlier attempt


def run_distributed(
    source: Source,
    model: str,
    config: TrainConfig,
    group: Group,
    runs: Sequence[int] = range(10),
    seed: int = 0,
    out: Path | str | None = None,
    fresh: bool = False,
    progress: RunProgress | None = None,
    building: Progress | None = None,
    say: Callable[[str], None] | None = None,
    every: int = EVERY,
    dtype: torch.dtype = torch.float32,
    everything: bool = False,
) -> dict[str, Any]:
    """What :func:`asgat.training.runner.run` does, by all ranks of a group together.

    Losses and weights are those of a single process up to rounding, but for the random numbers of dropout, which every
    rank draws for its own nodes. Rank 0 writes the run directory, and every few epochs a checkpoint into it, from which
    any number of ranks goes on.

    Args:
        source: a graph on disk, of which each rank reads its part, or a data set in memory.
        model, config, runs, seed, out, fresh, progress, building: as there.
        group: the ranks.
        say: called by rank 0 with a sentence when a run is taken up again.
        every: epochs between checkpoints.
        dtype: of features and weights.
        everything: exchange all rows of features instead of those that are needed.
    """
    settings = {
        "dataset": source.name,
        "model": model,
        "protocol": source.protocol,
        "seed": seed,
        "runs": list(runs),
        "config": config.to_dict(),
    }
    several = source.num_splits > 1
    for i in runs:
        if i < 0 or (several and i >= source.num_splits):
            raise AsgatError(f"{source.name} has splits 0 to {source.num_splits - 1}; there is no split {i}.")
    directory = RunDirectory(out) if out is not None else None
    file = Path(out) / CHECKPOINT if out is not None else None

    def begin() -> tuple[list[dict[str, Any]], bytes | None]:
        if directory is None or file is None:
            return [], None
        if fresh:
            file.unlink(missing_ok=True)
        done = directory.begin(settings, fresh)
        return done, file.read_bytes() if file.exists() else None

    done, saved = group.from_first(begin)
    missing = [i for i in runs if i not in {row["run"] for row in done}]
    result = summarise(settings, cast(Dataset, source), done)  # of which it asks the metric
    if not missing:
        return result
    group.lost_rank.status = "the table was built"
    started = time.perf_counter()
    shard = build_shard(source, model, config, group, dtype, everything, building if group.first else None)
    ranks = {"build_s": time.perf_counter() - started, **shard.figures()}
    keep_freed_memory()
    for i in missing:
        split = source.split(i if several else 0, shard.first, shard.last)
        trainer = ShardTrainer(shard, split, source, model, config, seed if several else seed + i, group, dtype)
        trainer.begin(i, saved, file, say)
        row = trainer.train(file, every, progress)
        saved = None
        row.update(trainer.certified_figures())
        row["peak_memory_mb"] = peak_memory_mb(group.device)
        row["ranks"] = group.gather({**ranks, "peak_memory_mb": row["peak_memory_mb"]})
        row["peak_memory_mb"] = sum(part["peak_memory_mb"] for part in row["ranks"])
        best_so_far = max((r["val_score"] for r in done), default=-1.0)
        if directory and group.first:
            history = [vars(epoch) for epoch in trainer.epochs()]
            directory.add_metrics([{"run": i, **epoch} for epoch in history], [r["run"] for r in done])
            if row["val_score"] > best_so_far:
                shape = {"in_channels": source.num_features, "out_channels": source.num_classes}
                metadata = {**settings, "run": i, **shape, "num_nodes": source.num_nodes}
                directory.write_model(trainer.final_state, metadata)
        done.append(row)
        result = summarise(settings, cast(Dataset, source), done)
        if directory and file and group.first:
            directory.write_result(result)
            file.unlink(missing_ok=True)
    return {**result, "history": [vars(epoch) for epoch in trainer.epochs()]}


class ShardTrainer:
    """One run on one rank: the rule of :func:`asgat.training.trainer.train`, figures and gradients summed over ranks.

    Args:
        shard: this rank's part.
        split: its nodes to train, choose and report on, numbered within the part.
        source: gives sizes and metric.
        model, config, seed: as for :func:`run_distributed`.
        group: the ranks.
        dtype: of the weights.
    """

    def __init__(
        self,
        shard: Shard,
        split: Split,
        source: Source,
        model: str,
        config: TrainConfig,
        seed: int,
        group: Group,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.shard, self.config, self.seed, self.group, self.dtype = shard, config, seed, group, dtype
        self.metric, self.num_classes = source.metric, source.num_classes
        sizes = source.num_features, source.num_classes, source.num_nodes
        self.build: Callable[[], nn.Module] = partial(model_spec(model).make, config, *sizes)
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
        majority = int(counts[0].argmax())
        self.hopeless = 0.5 if self.metric == "roc_auc" else int(counts[1, majority]) / self.totals["val"]
        self.state = State(run=0)
        self.kept: dict[str, Tensor] = {}  # weights of the epoch that counts
        self.best_state: dict[str, Tensor] = {}  # and of the best earlier attempt
        self.final_state: dict[str, Tensor] = {}

    # -- one epoch ----------------------------------------------------------------------------------------------------

    def _start(self, attempt: int) -> None:
        torch.manual_seed(seed_of(self.seed, attempt))
        self.model = self.build().to(device=self.group.device, dtype=self.dtype)
        self.optimiser: Any = torch.optim.Adam(
            self.model.parameters(), lr=self.config.lr, weight_decay=self.config.weight_decay, fused=True
        )
        self.stopping = EarlyStopping(self.config.patience)
        self.kept = {}

    def _logits(self) -> Tensor:
        logits: Tensor = self.model(self.shard.x, self.shard.operator)
        return logits

    def _epoch(self, epoch: int) -> tuple[float, float, float]:
        """A training step and an evaluation: training loss, validation loss and score over all ranks."""
        stream = seed_of(self.seed, self.state.attempt) * 1_000_003 + epoch
        torch.manual_seed((stream * self.group.size + self.group.rank) % 2**63)  # an epoch repeats after a relaunch
        self.model.train()
        self.optimiser.zero_grad()
        loss = self._loss(self._logits(), "train")
        loss.backward()  # type: ignore[no-untyped-call]
        if not self.shard.operator.exact_sums:  # these are summed as they arise
            self.group.sum_gradients(list(self.model.parameters()))
        self.optimiser.step()
        logits, right = self._evaluate()
        figures = torch.stack([loss.detach().double(), self._loss(logits, "val").double(), right / self.totals["val"]])
        train_loss, val_loss, score = self.group.sum(figures).tolist()
        return train_loss, val_loss, self._area(logits, "val") if self.metric == "roc_auc" else score

    def _loss(self, logits: Tensor, part: str) -> Tensor:
        """This rank's share of the mean loss of a part."""
        chosen = logits.index_select(0, self.nodes[part])
        loss: Tensor = F.cross_entropy(chosen, self.labels[part], reduction="sum") / self.totals[part]
        return loss

    @torch.no_grad()
    def _evaluate(self) -> tuple[Tensor, Tensor]:
        self.model.eval()
        logits = self._logits()
        right = logits.index_select(0, self.nodes["val"]).argmax(-1) == self.labels["val"]
        return logits, right.double().sum()

    def _area(self, logits: Tensor, part: str) -> float:
        chosen = torch.nan_to_num(logits.index_select(0, self.nodes[part]).double())
        mine = (chosen[:, 1] - chosen[:, 0]).cpu().numpy(), self.labels[part].cpu().numpy()
        margin, labels = (np.concatenate(column) for column in zip(*self.group.gather(mine), strict=True))
        return roc_auc(labels, margin)

    # -- a run --------------------------------------------------------------------------------------------------------

    def train(self, file: Path | None, every: int, progress: RunProgress | None) -> dict[str, Any]:
        """Trains to the end of early stopping, starting anew where nothing was learned; returns the run's row."""
        state, config = self.state, self.config
        began = time.perf_counter() - state.seconds
        diverged: AsgatError | None = None
        times: list[float] = []
        while True:
            while state.epoch < config.epochs and not self.stopping.stop:
                self.group.lost_rank.status = f"epoch {state.epoch + 1} of run {state.run} was computed"
                before = time.perf_counter()
                train_loss, val_loss, val_score = self._epoch(state.epoch + 1)
                times.append(time.perf_counter() - before)
                state.epoch += 1
                if not math.isfinite(train_loss + val_loss):
                    diverged = DivergedError(state.epoch, train_loss, val_loss, config.lr)
                    break
                state.history.append([state.attempt, state.epoch, train_loss, val_loss, val_score])
                if progress and self.group.first:
                    progress(state.run, self.epochs()[-1])
                if self.stopping.update(val_loss, val_score):
                    self.kept = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
                    state.best_epoch = state.epoch
                state.seconds = time.perf_counter() - began
                if file and state.epoch % every == 0:
                    self._save(file)
            else:
                self.model.load_state_dict(self.kept)
                figures = {"best_epoch": state.best_epoch, **self._figures()}
                if state.best is None or figures["val_score"] > state.best["val_score"]:
                    state.best = figures
                    self.best_state = {name: value.detach().clone() for name, value in self.kept.items()}
            learned = state.best is not None and (
                state.best["val_score"] > self.hopeless or state.best["val_score"] == 1
            )
            if learned or state.attempt == config.max_restarts:
                break
            state.attempt, state.epoch, state.best_epoch = state.attempt + 1, 0, 0
            self._start(state.attempt)
        if state.best is None:
            assert diverged is not None
            raise diverged
        self.final_state = {name: value.cpu() for name, value in self.best_state.items()}
        return {
            "run": state.run,
            "seed": self.seed,
            "epochs": len(state.history),
            **state.best,
            "restarts": state.attempt,
            "seconds": time.perf_counter() - began,
            "epoch_s": statistics.median(times[2:] or times or [0.0]),  # the first ones compile
        }

    def epochs(self) -> list[Epoch]:
        return [Epoch(int(a), int(e), loss, val_loss, score) for a, e, loss, val_loss, score in self.state.history]

    @torch.no_grad()
    def _figures(self) -> dict[str, Any]:
        """Validation loss and score, and the scores on the test nodes, from counts that ranks add up."""
        logits, right = self._evaluate()
        prediction = logits.index_select(0, self.nodes["test"]).argmax(-1)
        classes = self.num_classes
        confusion = torch.bincount(self.labels["test"] * classes + prediction, minlength=classes**2).double()
        loss = self._loss(logits, "val").double()
        counted = torch.cat([torch.stack([loss, right / self.totals["val"]]), confusion])
        val_loss, val_score, *counts = self.group.sum(counted).tolist()
        auc = self.metric == "roc_auc"
        micro, macro = scores_from_counts(np.array(counts).reshape(classes, classes))
        return {
            "val_loss": val_loss,
            "val_score": self._area(logits, "val") if auc else val_score,
            "micro_f1": micro,
            "macro_f1": macro,
            "roc_auc": self._area(logits, "test") if auc else None,
        }

    @torch.no_grad()
    def certified_figures(self) -> dict[str, Any]:
        """How far the attention can be from the paper's, where the table's rows are proven; nothing otherwise."""
        if not isinstance(self.model, AttentionModel) or not self.shard.operator.table.exact:
            return {}
        self.model.load_state_dict(self.best_state)
        bounds = [c.bound.double() for c in self.model.certificates(self.shard.operator)]
        exact = [c.exact for c in self.model.certificates(self.shard.operator)]
        sums = torch.tensor([[float(b.sum()), float(e.sum()), b.numel()] for b, e in zip(bounds, exact, strict=True)])
        total = self.group.sum(sums.double().to(self.group.device)).cpu()
        largest = max(self.group.gather(max((float(b.max()) for b in bounds if b.numel()), default=0.0)))
        return {
            "certified_share": float((total[:, 1] / total[:, 2]).mean()),
            "mean_bound": float((total[:, 0] / total[:, 2]).mean()),
            "max_bound": largest,
        }

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def begin(self, run: int, saved: bytes | None, file: Path | None, say: Callable[[str], None] | None) -> None:
        """Starts a run, or takes it up where a checkpoint of it left it."""
        self.state = State(run=run)
        self._start(0)
        if file is not None:
            self.group.lost_rank.remedy = (
                "relaunch the same command, with any number of ranks, and it goes on from the last checkpoint"
            )
        if saved is None:
            return
        state, tensors = decode_checkpoint(saved, file)
        if state.run != run:
            return
        self.state = state
        self._start(state.attempt)
        stopping = self.stopping
        stopping.waited = state.waited
        stopping.best_loss = math.inf if state.best_loss is None else state.best_loss
        stopping.best_score = -math.inf if state.best_score is None else state.best_score
        held = {name: tensor.to(self.group.device) for name, tensor in tensors.items()}
        self.model.load_state_dict(_under("model.", held))
        self.kept, self.best_state = _under("kept.", held), _under("best.", held)
        for i, parameter in enumerate(self.model.parameters()):
            moments = _under(f"adam.{i}.", held)
            if moments:
                moments["step"] = moments["step"].to(torch.float32)
                self.optimiser.state[parameter] = moments
        if say and self.group.first:
            say(f"Run {run} goes on after epoch {state.epoch}, from {file}.")

    def _save(self, file: Path) -> None:
        if not self.group.first:
            return
        state = self.state
        state.waited = self.stopping.waited
        state.best_loss = self.stopping.best_loss if math.isfinite(self.stopping.best_loss) else None
        state.best_score = self.stopping.best_score if math.isfinite(self.stopping.best_score) else None
        tensors = {f"model.{name}": value.detach() for name, value in self.model.state_dict().items()}
        tensors |= {f"kept.{name}": value for name, value in self.kept.items()}
        tensors |= {f"best.{name}": value for name, value in self.best_state.items()}
        for i, parameter in enumerate(self.model.parameters()):
            for name, value in self.optimiser.state.get(parameter, {}).items():
                tensors[f"adam.{i}.{name}"] = torch.as_tensor(value)
        plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_atomic(file, save(plain, metadata={"state": json.dumps(asdict(state))}))


def decode_checkpoint(content: bytes, file: Path | None = None) -> tuple[State, dict[str, Tensor]]:
    """What a checkpoint file holds: where the run was, and its tensors."""
    try:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        return State(**json.loads(header["__metadata__"]["state"])), load(content)
    except (ValueError, KeyError, TypeError, SafetensorError, RecursionError) as error:
        raise AsgatError(f"{file} cannot be read as a checkpoint: {brief(error)}. Start anew with --fresh.") from error


def scores_from_counts(confusion: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Micro- and macro-F1 from counts [truth, prediction], as :mod:`asgat.training.metrics` has them from labels."""
    right, truth, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    present = (truth + predicted) > 0
    f1 = 2 * right[present] / (truth + predicted)[present]
    return float(right.sum() / confusion.sum()), float(f1.mean())


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
