"""Epochs of one run, or of several stacked ones, as one tensor program."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.kernels.dropout import dropout_seeds
from asgat.nn.stacking import count_dropouts, load_run_state, stack, stackable
from asgat.spectral import SpectralOperator
from asgat.tables.held_selections import HeldSelections
from asgat.training.adam import Adam
from asgat.training.objective import Objective, scores_of
from asgat.training.run_state import Job, Run, State

Figures = tuple[float, float, float]  # training loss, validation loss, validation score


@dataclass(frozen=True, eq=False)
class Task:
    """What all runs of a training share."""

    build: Callable[[TrainConfig], nn.Module]  # makes the model; called once per attempt, after seeding
    inputs: tuple[Any, ...]  # what the model's forward takes, features first
    y: Tensor  # labels of all nodes
    metric: str = "micro_f1"  # the validation score, or "roc_auc"
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def resumable(self) -> bool:
        """Whether a run can resume from the middle: not on rational operators, whose fallbacks are not saved."""
        return not any(getattr(part, "records_fallbacks", False) for part in self.inputs)

    def stacks(self, config: TrainConfig) -> bool:
        """Whether several runs with these settings can be one program."""
        if "stacks" not in self._known:
            operator = self.inputs[1] if len(self.inputs) == 2 else None
            able = isinstance(operator, SpectralOperator) and self.resumable
            self._known["stacks"] = able and stackable(self.example(config.replace(members=1)))
        return bool(self._known["stacks"])

    def example(self, config: TrainConfig) -> nn.Module:
        """A model with these settings, without disturbing the random numbers."""
        with torch.random.fork_rng(devices=[]):
            return self.build(config)

    def dropouts(self, model: nn.Module) -> int:
        """How many random numbers per run one training step of the stacked model takes."""
        if "dropouts" not in self._known:
            self._known["dropouts"] = count_dropouts(model, *self.inputs)
        return int(self._known["dropouts"])


class Program:
    """Trains some runs at once, an epoch at a time.

    The runs share nothing but the computation: each has its own weights, optimiser, random stream, loss and score.
    On the CPU the numbers of a run are, to the last bit, the same whatever other runs it is stacked with.

    Args:
        task: what the runs share.
        runs: more than one only if ``task.stacks`` their settings.
        snapshots: for a run that resumes, what :meth:`snapshot` gave; None for one that starts.

    Attributes:
        held: where an evaluation leaves its selections for the next step; None if operators see to that themselves.
        model: the stacked model, or the model itself of a run that cannot be stacked.
        kept: for every run the weights of the epoch that early stopping keeps.
    """

    may_stack = True

    def __init__(self, task: Task, runs: Sequence[Run], snapshots: Sequence[State | None]) -> None:
        self.task, self.runs, self.device = task, list(runs), task.y.device
        self.held: HeldSelections | None = None
        self.stacked = self.may_stack and task.stacks(runs[0].job.config)
        self.streams: list[torch.Generator] = []
        for run in runs:
            if run.module is None:
                torch.manual_seed(run.seed)
                run.module = task.build(run.job.config)
            self.streams.append(torch.Generator().set_state(torch.get_rng_state()))
        self.models = [run.module for run in runs if run.module is not None]
        self.model = (stack(self.models) if self.stacked else self.models[0]).to(self.device)
        self.modules = list(self.model.modules())
        self.parameters = list(self.model.parameters())
        rates = [(run.job.config.lr, run.job.config.weight_decay) for run in runs]
        self.adam = Adam(self.parameters, rates, self.stacked, runs[0].job.config.decoupled_decay)
        state = self.model.state_dict()
        self.weights = [{name: v[row] if self.stacked else v for name, v in state.items()} for row in range(len(runs))]
        self.kept = [{name: value.clone() for name, value in row.items()} for row in self.weights]
        self.objectives = [Objective(task.y, run.job.split, run.job.config, task.metric) for run in runs]
        for row, snapshot in enumerate(snapshots):
            if snapshot is not None:
                self._restore(row, snapshot)

    # -- an epoch -----------------------------------------------------------------------------------------------------

    @property
    def capturable(self) -> bool:
        """Whether CUDA can record an epoch and replay it: nothing in it waits for the host."""
        if self.device.type != "cuda":
            return False
        return all(getattr(part, "capturable", True) for part in self.task.inputs)

    def epoch(self, seeds: Tensor | None = None) -> Tensor:
        """A training step and an evaluation of every run, with what :meth:`draw` gave for this epoch.

        Returns training loss, validation loss and validation score, [runs, 3] in double precision.
        """
        with nullcontext() if self.held is None else self.held.giving():
            train_losses = self.step(seeds)
        with nullcontext() if self.held is None else self.held.keeping():
            evaluated = self.evaluate()
        figures = [
            torch.stack([loss, *self.validate(row, logits)])
            for row, (loss, logits) in enumerate(zip(train_losses, evaluated, strict=True))
        ]
        return torch.stack(figures)

    def step(self, seeds: Tensor | None) -> list[Tensor]:
        """One training step; returns the training losses in double precision."""
        self.set_training(True)
        with nullcontext() if seeds is None else dropout_seeds(iter(seeds.unbind()).__next__):
            logits = self.forward()
        losses = [objective.loss(own) for objective, own in zip(self.objectives, logits, strict=True)]
        # The runs share no weights, so that the gradient of the sum is each run's own.
        total = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        self.adam.step(torch.autograd.grad(total, self.parameters, allow_unused=True))
        return [loss.detach().double() for loss in losses]

    def forward(self) -> tuple[Tensor, ...]:
        """The logits of every run."""
        logits: Tensor = self.model(*self.task.inputs)
        return logits.unbind() if self.stacked else (logits,)

    @torch.no_grad()
    def evaluate(self) -> tuple[Tensor, ...]:
        """The logits of every run, without dropout."""
        self.set_training(False)
        return self.forward()

    def validate(self, row: int, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Validation loss and score of a run."""
        return self.objectives[row].validate(logits)

    def set_training(self, training: bool) -> None:
        """As ``model.train``, which walks through the modules again every time and looks for parameters to replace."""
        for module in self.modules:
            vars(module)["training"] = training

    # -- random numbers -----------------------------------------------------------------------------------------------

    @cached_property
    def dropouts(self) -> int:
        """Random numbers per run and epoch; 0 where the model draws from PyTorch's generator itself."""
        dropped = any(run.job.config.dropout for run in self.runs)
        return self.task.dropouts(self.model) if self.stacked and dropped else 0

    def draw(self, epochs: int) -> Tensor | None:
        """What every run draws for dropout in its next epochs, [epochs, dropouts, runs]; None where nothing."""
        if not self.dropouts:
            return None
        count = epochs * self.dropouts
        drawn = [  # a run without dropout draws nothing, and nothing depends on what it is given
            torch.randint(2**62, (count,), generator=stream)
            if run.job.config.dropout
            else torch.zeros(count, dtype=torch.int64)
            for run, stream in zip(self.runs, self.streams, strict=True)
        ]
        return torch.stack(drawn, dim=1).view(epochs, self.dropouts, -1)

    # -- weights ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def keep(self, rows: Sequence[int], source: Callable[[int], State] | None = None) -> None:
        """Remembers the weights of some runs: those they have now, or those that ``source`` gives for a run."""
        given = {row: (source or self.weights.__getitem__)(row) for row in rows}
        kept = [value for row in given for value in self.kept[row].values()]
        if kept:
            torch._foreach_copy_(kept, [given[row][name] for row in given for name in self.kept[row]])

    @torch.no_grad()
    def scores(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What some runs are scored by, with the weights they keep. The weights they had are lost."""
        if self.stacked:
            model = stack([self.models[row] for row in rows]).to(self.device).eval()
            for place, row in enumerate(rows):
                load_run_state(model, place, self.kept[row])
            logits = model(*self.task.inputs).unbind()
        else:
            self.model.load_state_dict(self.kept[0])
            logits = self.evaluate()
        splits = [self.runs[row].job.split for row in rows]
        return [scores_of(o, self.task.y, split, self.task.metric) for o, split in zip(logits, splits, strict=True)]

    def _state(self, row: int) -> State:
        parts = {"model": self.weights[row], "kept": self.kept[row], "adam": self.adam.state(row)}
        return {f"{part}.{name}": value for part, held in parts.items() for name, value in held.items()}

    def snapshot(self, row: int) -> State:
        """Everything a run resumes from, by name; tensors are copies."""
        held = self._state(row)
        held["random"] = self.streams[row].get_state() if self.stacked else torch.get_rng_state()
        if not self.stacked and self.device.type == "cuda":
            held["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return {name: value.detach().clone() for name, value in held.items()}

    @torch.no_grad()
    def _restore(self, row: int, snapshot: State) -> None:
        own = self._state(row)
        given = {name: value for name, value in snapshot.items() if not name.startswith("random")}
        if shapes(own) != shapes(given):
            raise other_model()
        for name, value in own.items():
            value.copy_(snapshot[name])
        random = snapshot.get("random")
        if random is None:  # a checkpoint of several ranks, which seed every epoch
            torch.manual_seed(self.runs[row].seed + self.runs[row].epoch)
            self.streams[row].manual_seed(self.runs[row].seed + self.runs[row].epoch)
            return
        try:
            self.streams[row].set_state(random.cpu())
            if not self.stacked:
                torch.set_rng_state(random.cpu())
                if self.device.type == "cuda" and "random.cuda" in snapshot:
                    torch.cuda.set_rng_state(snapshot["random.cuda"].cpu(), self.device)
        except (RuntimeError, TypeError) as error:  # of another generator, or none at all
            raise other_model() from error


def shapes(state: State) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in state.items()}


def other_model() -> AsgatError:
    return AsgatError("The unfinished run is of another model. Start again with --fresh.")


def one_run(task: Task, split: Split, config: TrainConfig, seed: int = 0) -> Program:
    """The program of a single run, for measuring and looking inside."""
    return Program(task, [Run(Job(split, seed, config), 0.0)], [None])


class EagerEpochs:
    """Epochs of a program run one at a time."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, limit: int) -> list[list[Figures]]:
        """Runs the next epochs, at most ``limit`` of them; returns the figures of every run for each of them."""
        seeds = self.program.draw(1)
        figures = self.program.epoch(None if seeds is None else seeds[0].to(self.program.device))
        return [figures.tolist()]

    def keep(self, positions: dict[int, int]) -> None:
        """Remembers the weights of some runs, each after the epoch at its position in the last :meth:`run`."""
        self.program.keep(list(positions))


class CapturedEpochs:
    """Epochs recorded as one CUDA graph and replayed in chunks, without waiting for the host in between.

    The weights after each epoch of a chunk are kept in a ring, so that early stopping, which reads the figures chunk by
    chunk, finds the weights of any epoch it settles on: it stops exactly where it would have, epoch by epoch.
    """

    chunk = 16

    def __init__(self, program: Program) -> None:
        self.program = program
        device, runs = program.device, len(program.runs)
        self.figures = torch.zeros(self.chunk, runs, 3, dtype=torch.float64, device=device)
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)
        self.seeds = torch.zeros(self.chunk, program.dropouts, runs, dtype=torch.int64, device=device)
        self.state = {name: value.detach() for name, value in program.model.state_dict().items()}
        self.ring: State = {}
        self._copied: list[tuple[Tensor, Tensor]] = []  # what the ring holds, and where
        if (flat := program.adam.flat) is not None:
            names = (name for name, _ in program.model.named_parameters())
            self.ring |= zip(names, flat.views(self._slots(flat.value)), strict=True)
        self.ring |= {name: self._slots(value) for name, value in self.state.items() if name not in self.ring}
        program.held = HeldSelections()
        changed = [*self.state.values(), *(v for row in range(runs) for v in program.adam.state(row).values())]
        before, random = [value.clone() for value in changed], torch.cuda.get_rng_state(device)
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            self._select()
            for _ in range(3):  # compiles kernels, which cannot be recorded
                self._epoch()
        torch.cuda.current_stream(device).wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._epoch()
        with torch.no_grad():
            for value, start in zip(changed, before, strict=True):
                value.copy_(start)
        self._select()
        torch.cuda.set_rng_state(random, device)

    def _slots(self, value: Tensor) -> Tensor:
        """Room for the values after every epoch of a chunk."""
        self._copied.append((value, value.new_zeros(self.chunk, *value.shape)))
        return self._copied[-1][1]

    def _select(self) -> None:
        """Makes the selections of the first step, which later ones find."""
        assert self.program.held is not None
        with self.program.held.keeping():
            self.program.evaluate()

    def _epoch(self) -> None:
        seeds = self.seeds.index_select(0, self.slot).squeeze(0) if self.program.dropouts else None
        self.figures.index_copy_(0, self.slot, self.program.epoch(seeds).unsqueeze(0))
        for value, slots in self._copied:
            slots.index_copy_(0, self.slot, value.unsqueeze(0))
        self.slot.add_(1).remainder_(self.chunk)

    def run(self, limit: int) -> list[list[Figures]]:
        count = min(limit, self.chunk)
        self.slot.zero_()
        drawn = self.program.draw(count)
        if drawn is not None:
            self.seeds[:count].copy_(drawn)
        for _ in range(count):
            self.graph.replay()
        figures: list[list[Figures]] = self.figures[:count].tolist()
        return figures

    def keep(self, positions: dict[int, int]) -> None:
        stacked = self.program.stacked

        def source(row: int) -> State:
            kept = {name: ring[positions[row]] for name, ring in self.ring.items()}
            return {name: value[row] if stacked else value for name, value in kept.items()}

        self.program.keep(list(positions), source)


def epochs_of(program: Program) -> EagerEpochs | CapturedEpochs:
    """The fastest way to run a program's epochs on its device."""
    return CapturedEpochs(program) if program.capturable else EagerEpochs(program)
