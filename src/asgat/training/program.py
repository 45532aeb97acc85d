"""Epochs of one run as a tensor program."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.tables.held_selections import HeldSelections
from asgat.training.adam import Adam
from asgat.training.objective import Objective, scores_of
from asgat.training.run_state import Job, Run, State

Figures = list[float]  # training loss, validation loss, validation score


@dataclass(frozen=True, eq=False)
class Task:
    """What all runs of a training share."""

    build: Callable[[TrainConfig], nn.Module]  # makes the model; called after seeding
    inputs: tuple[Any, ...]  # what the model's forward takes, features first
    y: Tensor  # labels of all nodes
    metric: str = "micro_f1"  # the validation score, or "roc_auc"

    @property
    def resumable(self) -> bool:
        """Whether a run can resume from the middle: not on rational operators, whose fallbacks are not saved."""
        return not any(getattr(part, "records_fallbacks", False) for part in self.inputs)

    def example(self, config: TrainConfig) -> nn.Module:
        """A model with these settings, without disturbing the random numbers."""
        with torch.random.fork_rng(devices=[]):
            return self.build(config)


class Program:
    """Trains one run, an epoch at a time.

    Args:
        task: what it shares with other runs.
        run: its state; the program trains its current attempt.
        snapshot: for a run that resumes, what :meth:`snapshot` gave.

    Attributes:
        held: where an evaluation leaves its selections for the next step; None if operators see to that themselves.
        weights: of the model, as they are now.
        kept: those of the epoch that early stopping keeps.
    """

    def __init__(self, task: Task, run: Run, snapshot: State | None = None) -> None:
        self.task, self.run, self.device = task, run, task.y.device
        self.held: HeldSelections | None = None
        config = run.job.config
        torch.manual_seed(run.seed)
        self.model = task.build(config).to(self.device)
        self.modules = list(self.model.modules())
        self.parameters = list(self.model.parameters())
        self.adam = Adam(self.parameters, config.lr, config.weight_decay, config.decoupled_decay)
        self.weights: State = self.model.state_dict()
        self.kept = {name: value.clone() for name, value in self.weights.items()}
        self.objective = Objective(task.y, run.job.split, config, task.metric)
        if snapshot is not None:
            self._restore(snapshot)

    # -- an epoch -----------------------------------------------------------------------------------------------------

    @property
    def capturable(self) -> bool:
        """Whether CUDA can record an epoch and replay it: nothing in it waits for the host."""
        if self.device.type != "cuda":
            return False
        return all(getattr(part, "capturable", True) for part in self.task.inputs)

    def epoch(self) -> Tensor:
        """A training step and an evaluation: training loss, validation loss and validation score, [3], in double."""
        with nullcontext() if self.held is None else self.held.giving():
            loss = self.step()
        with nullcontext() if self.held is None else self.held.keeping():
            logits = self.evaluate()
        return torch.stack([loss, *self.validate(logits)])

    def step(self) -> Tensor:
        """One training step; returns the training loss in double precision."""
        self.set_training(True)
        loss = self.objective.loss(self.forward())
        self.adam.step(torch.autograd.grad(loss, self.parameters, allow_unused=True))
        return loss.detach().double()

    def forward(self) -> Tensor:
        logits: Tensor = self.model(*self.task.inputs)
        return logits

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """The logits without dropout."""
        self.set_training(False)
        return self.forward()

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Validation loss and score."""
        return self.objective.validate(logits)

    def set_training(self, training: bool) -> None:
        """As ``model.train``, which walks through the modules again every time and looks for parameters to replace."""
        for module in self.modules:
            vars(module)["training"] = training

    # -- weights ------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def keep(self, source: State | None = None) -> None:
        """Remembers the weights as they are now, or those that are given."""
        given = self.weights if source is None else source
        if self.kept:
            torch._foreach_copy_(list(self.kept.values()), [given[name] for name in self.kept])

    @torch.no_grad()
    def scores(self) -> dict[str, Any]:
        """What the run is scored by, with the weights that are kept. Those it had are lost."""
        self.model.load_state_dict(self.kept)
        return scores_of(self.evaluate(), self.task.y, self.run.job.split, self.task.metric)

    def _state(self) -> State:
        parts = {"model": self.weights, "kept": self.kept, "adam": self.adam.state()}
        return {f"{part}.{name}": value for part, held in parts.items() for name, value in held.items()}

    def snapshot(self) -> State:
        """Everything the run resumes from, by name; tensors are copies."""
        held = {**self._state(), "random": torch.get_rng_state()}
        if self.device.type == "cuda":
            held["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return {name: value.detach().clone() for name, value in held.items()}

    @torch.no_grad()
    def _restore(self, snapshot: State) -> None:
        own = self._state()
        given = {name: value for name, value in snapshot.items() if not name.startswith("random")}
        if shapes(own) != shapes(given):
            raise other_model()
        for name, value in own.items():
            value.copy_(snapshot[name])
        random = snapshot.get("random")
        if random is None:  # a checkpoint of several ranks, which seed every epoch
            torch.manual_seed(self.run.seed + self.run.epoch)
            return
        try:
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
    return Program(task, Run(Job(split, seed, config), 0.0))


class EagerEpochs:
    """Epochs of a program run one at a time."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, limit: int) -> list[Figures]:
        """Runs the next epochs, at most ``limit`` of them; returns the figures of each."""
        return [self.program.epoch().tolist()]

    def keep(self, position: int) -> None:
        """Remembers the weights after the epoch at this position in the last :meth:`run`."""
        self.program.keep()


class CapturedEpochs:
    """Epochs recorded as one CUDA graph and replayed in chunks, without waiting for the host in between.

    The weights after each epoch of a chunk are kept in a ring, so that early stopping, which reads the figures chunk by
    chunk, finds the weights of any epoch it settles on: it stops exactly where it would have, epoch by epoch. Dropout
    draws from the generator of the device, which every replay moves on.
    """

    chunk = 16

    def __init__(self, program: Program) -> None:
        self.program = program
        device = program.device
        self.figures = torch.zeros(self.chunk, 3, dtype=torch.float64, device=device)
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)
        self.ring: State = {}
        self._copied: list[tuple[Tensor, Tensor]] = []  # what the ring holds, and where
        if (flat := program.adam.flat) is not None:
            names = (name for name, _ in program.model.named_parameters())
            self.ring |= zip(names, flat.views(self._slots(flat.value)), strict=True)
        self.ring |= {name: self._slots(value) for name, value in program.weights.items() if name not in self.ring}
        program.held = HeldSelections()
        changed = [*program.weights.values(), *program.adam.state().values()]
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
        self.figures.index_copy_(0, self.slot, self.program.epoch().unsqueeze(0))
        for value, slots in self._copied:
            slots.index_copy_(0, self.slot, value.unsqueeze(0))
        self.slot.add_(1).remainder_(self.chunk)

    def run(self, limit: int) -> list[Figures]:
        count = min(limit, self.chunk)
        self.slot.zero_()
        for _ in range(count):
            self.graph.replay()
        figures: list[Figures] = self.figures[:count].tolist()
        return figures

    def keep(self, position: int) -> None:
        self.program.keep({name: ring[position] for name, ring in self.ring.items()})


def epochs_of(program: Program) -> EagerEpochs | CapturedEpochs:
    """The fastest way to run a program's epochs on its device."""
    return CapturedEpochs(program) if program.capturable else EagerEpochs(program)
