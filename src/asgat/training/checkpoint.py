"""Unfinished runs in a file, from which they resume as if they had never stopped."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from asgat.errors import AsgatError, brief
from asgat.files.atomic import write_atomic
from asgat.files.raw_file import RawFile
from asgat.training.interrupt import Interrupt
from asgat.training.run_files import UNFINISHED
from asgat.training.run_state import Run, State

SECONDS = 30.0  # between two savings

Key = tuple[int, int, int]  # run, member, seed


class Checkpointer(Interrupt):
    """Saves the unfinished runs of a run directory from time to time, and when Ctrl-C asks for it.

    Use it as a context around the training.

    Args:
        folder: the run directory.
        device: runs resume only on the kind of device they began on; elsewhere they start again.
        data: digest of the data the runs are trained on.
        seconds: between two savings; ``SECONDS`` by default.
        epochs: save after this many epochs instead, for work whose pace must not depend on the clock.
        resumable: whether runs can resume from the middle. Otherwise they start again, with the same numbers.
    """

    def __init__(
        self,
        folder: Path | str,
        device: str = "cpu",
        data: str = "",
        seconds: float | None = None,
        epochs: int | None = None,
        resumable: bool = True,
    ) -> None:
        super().__init__()
        self.path, self.device, self.data, self.resumable = Path(folder) / UNFINISHED, device, data, resumable
        self.seconds, self.epochs = SECONDS if seconds is None else seconds, epochs
        self._last, self._epochs = time.monotonic(), 0

    def due(self, epochs: int = 1) -> bool:
        """Whether to save now, some epochs later."""
        self._epochs += epochs
        waited = time.monotonic() - self._last >= self.seconds if self.epochs is None else self._epochs >= self.epochs
        return self.asked or waited

    def save(self, runs: Sequence[tuple[Run, State]]) -> None:
        """Saves runs, each with the snapshot of its program; raises KeyboardInterrupt if Ctrl-C was pressed before."""
        if self.resumable:
            write_atomic(self.path, encode(runs, self.device, self.data))
        self._last, self._epochs = time.monotonic(), 0
        if self.asked:
            raise KeyboardInterrupt

    def load(self) -> bytes | None:
        """The content of the file, for :func:`decode`; None where there is nothing to resume."""
        return RawFile.read(self.path).content if self.resumable and self.path.exists() else None

    def restore(self, content: bytes | None, runs: Sequence[Run]) -> dict[int, State]:
        """Puts the runs of a checkpoint back; returns the snapshots of those in the middle by position in ``runs``."""
        if content is None:
            return {}
        saved = decode(content, self.path, self.device, self.data)
        snapshots: dict[int, State] = {}
        for position, run in enumerate(runs):
            found = saved.get((run.job.run, run.job.member, run.job.seed))
            if found is None:
                continue
            values, snapshot = found
            try:
                run.restore(values)
            except (ValueError, KeyError, TypeError) as error:
                raise refusal(self.path, error) from error
            run.best_state = _under("best.", snapshot)
            snapshot = {name: value for name, value in snapshot.items() if not name.startswith("best.")}
            if snapshot and not run.finished:  # one without is about to start another attempt
                snapshots[position] = snapshot
        return snapshots

    def remove(self) -> None:
        """Removes the file: its runs are finished, or start again."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise AsgatError(f"{self.path} cannot be removed: {error.strerror}.") from error


def encode(runs: Sequence[tuple[Run, State]], device: str, data: str) -> bytes:
    """A checkpoint: the state of every run as JSON, its tensors under the run's position."""
    tensors: State = {}
    for position, (run, snapshot) in enumerate(runs):
        own = snapshot | {f"best.{name}": value for name, value in run.best_state.items()}
        tensors |= {f"{position}.{name}": value.detach().cpu().contiguous().clone() for name, value in own.items()}
    header = {"runs": [run.to_dict() for run, _ in runs], "device": device, "data": data}
    return save(tensors, metadata={name: json.dumps(value) for name, value in header.items()})


def decode(content: bytes, path: Path, device: str, data: str) -> dict[Key, tuple[dict[str, Any], State]]:
    """The runs of a checkpoint by key; nothing if it was written on another kind of device.

    Raises:
        AsgatError: it is damaged, of another version, or of other data.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        header = {name: json.loads(text) for name, text in json.loads(content[8 : 8 + size])["__metadata__"].items()}
        if "runs" not in header:
            raise ValueError("it was written by another version of asgat")
        tensors = load(content)
        runs = {(v["run"], v["member"], v["seed"]): (v, _under(f"{i}.", tensors)) for i, v in enumerate(header["runs"])}
        other_data, other_device = header["data"] != data, header["device"] != device
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, SafetensorError) as error:
        raise refusal(path, error) from error
    if other_data:
        raise refusal(path, "it was trained on other data")
    return {} if other_device else runs


def refusal(path: Path, reason: object) -> AsgatError:
    return AsgatError(f"{path} holds no run that can go on: {brief(reason)}. Start again with --fresh.")


def _under(prefix: str, tensors: State) -> State:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
