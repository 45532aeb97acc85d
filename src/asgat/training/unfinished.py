"""A run in the middle, kept in a file from which it goes on as if it had never stopped."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from asgat.errors import AsgatError, brief
from asgat.files.atomic import write_atomic
from asgat.training.early_stopping import EarlyStopping
from asgat.training.interrupt import Interrupt

UNFINISHED = "unfinished.safetensors"
EVERY = 30.0  # seconds between two savings
KEPT_FIGURES = ("best_epoch", "val_loss", "val_score", "micro_f1", "macro_f1", "roc_auc")
MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # what Adam remembers of a parameter


@dataclass
class Position:
    """Where a run is: everything but its tensors, in plain values."""

    run: int
    seed: int
    device: str
    attempt: int = 0
    epoch: int = 0
    best_epoch: int = 0
    waited: int = 0
    best_loss: float | None = None
    best_score: float | None = None
    seconds: float = 0.0
    history: list[list[float]] = field(default_factory=list)
    best: dict[str, Any] | None = None  # figures of the best earlier attempt

    def __post_init__(self) -> None:
        counts = (self.run, self.attempt, self.epoch, self.best_epoch, self.waited)
        if not all(type(count) is int and 0 <= count < 2**31 for count in counts) or not _finite(self.seconds):
            raise ValueError("its counts are none")
        if not all(value is None or _finite(value) for value in (self.best_loss, self.best_score)):
            raise ValueError("its best figures are no numbers")
        if not isinstance(self.history, list) or not all(
            isinstance(row, list) and len(row) == 5 and all(map(_finite, row)) for row in self.history
        ):
            raise ValueError("its history is none")
        if self.best is not None and not all(isinstance(self.best[name], int | float | None) for name in KEPT_FIGURES):
            raise ValueError("its best attempt is none")


@dataclass
class Saved:
    """What a file of an unfinished run holds.

    Attributes:
        position: where it is.
        tensors: weights, optimiser and random states, by prefix.
        path: the file.
    """

    position: Position
    tensors: dict[str, Tensor]
    path: Path

    def best_state(self) -> dict[str, Tensor]:
        """Weights of the best earlier attempt."""
        return under("best.", self.tensors)

    def check(self, model: nn.Module, epochs: int, max_restarts: int) -> None:
        """Refuses what cannot be a run of this model, with so many epochs and restarts."""
        own = _shapes(model.state_dict())
        sound = self.position.epoch <= epochs and self.position.attempt <= max_restarts
        sound &= _shapes(under("model.", self.tensors)) == _shapes(under("kept.", self.tensors)) == own
        sound &= _shapes(self.best_state()) == (own if self.position.best else {})
        for i, parameter in enumerate(model.parameters()):
            moments = under(f"adam.{i}.", self.tensors)
            sound &= moments.keys() in (set(), MOMENTS)
            step = moments.pop("step", torch.ones(()))
            sound &= _shape(step) == ((), torch.float32) and bool(step >= 1.0)
            sound &= all(_shape(value) == _shape(parameter) for value in moments.values())
        random = self.tensors.get("random.cpu", torch.empty(0))
        if not sound or _shape(random) != _shape(torch.get_rng_state()):
            raise _refusal(self.path, "it is of another model")

    def restore(self, model: nn.Module, optimiser: torch.optim.Optimizer, stopping: EarlyStopping) -> dict[str, Tensor]:
        """Puts everything back in place, where a recording of the step may hold it; returns the weights kept so far."""
        position = self.position
        stopping.waited = position.waited
        stopping.best_loss = math.inf if position.best_loss is None else position.best_loss
        stopping.best_score = -math.inf if position.best_score is None else position.best_score
        model.load_state_dict(under("model.", self.tensors))
        device = torch.device(position.device)
        for i, parameter in enumerate(model.parameters()):
            moments, held = under(f"adam.{i}.", self.tensors), optimiser.state[parameter]
            for name, value in moments.items():
                if name in held:
                    held[name].copy_(value)
                else:
                    held[name] = value.to(device)
        torch.set_rng_state(self.tensors["random.cpu"])
        if device.type == "cuda":
            torch.cuda.set_rng_state(self.tensors["random.cuda"], device)
        return {name: value.to(device) for name, value in under("kept.", self.tensors).items()}


class Keeper(Interrupt):
    """Keeps one run of a run directory while it is trained: now and then, and when Ctrl-C asks for it.

    Use it as a context around the training.

    Args:
        folder: the run directory.
        run: the run's number there.
        every: seconds between two savings; ``EVERY`` by default.
        resumable: whether the run can go on from the middle. One that cannot starts anew, with the same numbers.
    """

    def __init__(self, folder: Path | str, run: int, every: float | None = None, resumable: bool = True) -> None:
        super().__init__()
        self.path, self.run, self.resumable = Path(folder) / UNFINISHED, run, resumable
        self.every = EVERY if every is None else every
        self._last = time.monotonic()

    def load(self, seed: int, device: torch.device) -> Saved | None:
        """What is kept of this run on this device; None where there is nothing."""
        if not self.resumable or not self.path.exists():
            return None
        try:
            content = self.path.read_bytes()
            size = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + size])
            position = Position(**json.loads(header["__metadata__"]["position"]))
            saved = Saved(position, load(content), self.path)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, SafetensorError) as error:
            raise _refusal(self.path, error) from error
        mine = saved.position.run, saved.position.seed, saved.position.device
        return saved if mine == (self.run, seed, str(device)) else None

    @property
    def due(self) -> bool:
        """Whether the run is to be saved now."""
        return self.asked or time.monotonic() - self._last >= self.every

    def save(
        self,
        position: Position,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        stopping: EarlyStopping,
        kept: dict[str, Tensor],
        best_state: dict[str, Tensor],
    ) -> None:
        """Saves a run after an epoch; afterwards, if Ctrl-C asked for it, stops.

        Raises:
            KeyboardInterrupt: it was asked for.
        """
        if self.resumable:
            position.waited = stopping.waited
            position.best_loss = stopping.best_loss if math.isfinite(stopping.best_loss) else None
            position.best_score = stopping.best_score if math.isfinite(stopping.best_score) else None
            tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
            tensors |= {f"kept.{name}": value for name, value in kept.items()}
            tensors |= {f"best.{name}": value for name, value in best_state.items()}
            for i, parameter in enumerate(model.parameters()):
                tensors |= {f"adam.{i}.{name}": value for name, value in optimiser.state.get(parameter, {}).items()}
            tensors["random.cpu"] = torch.get_rng_state()
            if torch.device(position.device).type == "cuda":
                tensors["random.cuda"] = torch.cuda.get_rng_state(position.device)
            plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
            write_atomic(self.path, save(plain, metadata={"position": json.dumps(asdict(position))}))
        self._last = time.monotonic()
        if self.asked:
            raise KeyboardInterrupt

    def remove(self) -> None:
        """Forgets the run: it is finished, or to be made anew."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise AsgatError(f"{self.path} cannot be removed: {error.strerror}.") from error


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _shape(value: Tensor) -> tuple[torch.Size, torch.dtype]:
    return value.shape, value.dtype


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: _shape(value) for name, value in tensors.items()}


def _refusal(path: Path, reason: object) -> AsgatError:
    return AsgatError(f"{path} holds no unfinished run: {brief(reason)}. Start anew with --fresh.")
