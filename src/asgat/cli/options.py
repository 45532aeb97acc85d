"""What the commands share: consoles, options, and how their values are read."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from asgat.errors import AsgatError

console = Console()
errors = Console(stderr=True)

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the benchmark files; else ASGAT_DATA_DIR, else a cache that is filled by download."),
]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this file.")]
Protocol = Annotated[str | None, typer.Option(help="Splits: full, public or geom-gcn; the paper's by default.")]
Runs = Annotated[str, typer.Option("--splits", help="Runs, as in 0-9 or 0,3: split i, or seed + i where there is one.")]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; see `asgat models MODEL`.")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what the run directory holds.")]

Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="On CUDA: bit-identical numbers every time, somewhat slower.")
]


def check_device(name: str, deterministic: bool = False) -> Any:
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        raise AsgatError(f"Unknown device {name!r}; use cpu or cuda.") from None
    if device.type not in ("cpu", "cuda"):
        raise AsgatError(f"Unknown device {name!r}; use cpu or cuda.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise AsgatError(
            f"{name} was asked for, but {torch.cuda.device_count()} CUDA devices are to be had here; use --device cpu."
        )
    if deterministic:
        from asgat.determinism import be_deterministic

        note = be_deterministic(device)
        if note:
            errors.print(note, highlight=False, soft_wrap=True)
    return device


def parse_runs(text: str) -> list[int]:
    """Run numbers from text such as ``0-9`` or ``0,3,5-7``, each once."""
    runs: set[int] = set()
    for part in text.split(","):
        numbers = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if numbers is None:
            raise AsgatError(f"--splits must be run numbers such as 0-9 or 0,3,5, not {text!r}.")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if last < first:
            raise AsgatError(f"--splits {text} names no run in {part.strip()}; ranges go upwards, as in 0-9.")
        if last - first >= 10_000:
            raise AsgatError(f"--splits {text} asks for more than ten thousand runs.")
        runs.update(range(first, last + 1))
    return sorted(runs)


def parse_settings(pairs: list[str], config: Any) -> dict[str, Any]:
    """Settings from ``key=value`` texts, typed as the model's configuration says."""
    values = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise AsgatError(f"--set takes key=value, not {pair!r}.")
        values[key.strip()] = config.parse(key.strip(), text.strip())
    return values


def check_writable(path: Path | None) -> None:
    """Refuses a file that could not be written, before hours are spent on what it should hold."""
    if path is None:
        return
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise AsgatError(f"{path} cannot be written; choose another place.")


def write_json(path: Path | None, values: Any) -> None:
    from asgat.files.atomic import to_json, write_atomic

    if path is not None:
        write_atomic(path, to_json(values))


def interrupted(kept: str) -> typer.Exit:
    """Says what is kept of an interrupted command, to the end whatever is pressed meanwhile; to be raised."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        errors.print(f"Interrupted. {kept}; the same command goes on from there.")
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
    return typer.Exit(130)
