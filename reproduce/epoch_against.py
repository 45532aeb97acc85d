"""Time of an epoch, or of a whole command, in this checkout next to another one.

    python reproduce/epoch_against.py ../before --datasets texas,cora --json epoch.json
    python reproduce/epoch_against.py ../before --command-time --repeats 3

Both checkouts are run as a user would, each with its own sources and its own `.venv` where it has one, so that they
need to share nothing but the command `asgat train` and the key `ms_per_epoch` of its `--json`. They take turns; the
smallest of the repeated times counts, because other processes can only add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Checkout:
    """A clone of the project and the Python that runs it."""

    folder: Path
    python: str

    def train(self, words: Sequence[str]) -> tuple[dict[str, Any], float]:
        """The numbers that `asgat train` writes, and the seconds that the command took."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src")}
        with tempfile.TemporaryDirectory() as place:
            files = ["--out", str(Path(place, "run")), "--json", str(Path(place, "result.json"))]
            started = time.perf_counter()
            command = [self.python, "-m", "asgat", "train", *words, *files]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            seconds = time.perf_counter() - started
            if done.returncode:
                sys.exit(f"error: {' '.join(command)} in {self.folder} ended with {done.returncode}: {done.stderr}")
            return json.loads(Path(place, "result.json").read_text(encoding="utf-8")), seconds


def checkout(folder: Path, python: str | None = None) -> Checkout:
    """The clone in a folder, with the Python given, that of its environment, or this one."""
    if not (folder / "src" / "asgat").is_dir():
        sys.exit(f"error: {folder} has no folder src/asgat; give the root of a checkout of this project.")
    own = folder / ".venv" / "bin" / "python"
    return Checkout(folder.resolve(), python or (str(own.absolute()) if own.exists() else sys.executable))


def milliseconds_per_epoch(of: Checkout, words: Sequence[str], epochs: int) -> tuple[float, Any]:
    """Milliseconds of a training step and an evaluation, and the epochs that the command counted.

    The first epochs take longer, because they load kernels: a short training is subtracted from a long one.
    """
    lengths = max(1, epochs // 5), epochs
    times, counted = [], []
    for length in lengths:
        settings = ["--set", f"epochs={length}", "--set", f"patience={length}"]
        result, _ = of.train([*words, "--splits", "0", *settings])
        times.append(length * float(result["ms_per_epoch"]))
        counted.append(result.get("epochs"))
    return (times[1] - times[0]) / (lengths[1] - lengths[0]), counted


def smallest(sides: Sequence[Checkout], measure: Callable[[Checkout], tuple[float, Any]], repeats: int) -> list[float]:
    """The smallest measurement of each side; they take turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(repeats):
        found = [measure(side) for side in sides]
        if any(work != found[0][1] for _, work in found):
            sys.exit(
                f"error: The checkouts counted different epochs, {[work for _, work in found]}; compare their time."
            )
        for own, (value, _) in zip(times, found, strict=True):
            own.append(value)
    return [min(own) for own in times]


def compare(sides: Sequence[Checkout], options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of the table."""
    rows = []
    for name in options.datasets.split(","):
        words = [name, *(word for pair in options.set for word in ("--set", pair))]
        words += ["--model", options.model] if options.model else []
        words += ["--threads", str(options.threads)] if options.threads else []

        def measure(side: Checkout, words: Sequence[str] = words) -> tuple[float, Any]:
            if options.command_time:
                return side.train([*words, "--splits", "0-9"])[1], None
            return milliseconds_per_epoch(side, words, options.epochs)

        this, other = smallest(sides, measure, options.repeats)
        rows.append({"dataset": name, "this": this, "other": other, "ratio": this / other})
    unit = "seconds of ten splits" if options.command_time else "milliseconds per epoch"
    return {"unit": unit, "repeats": options.repeats, "folders": [str(side.folder) for side in sides], "rows": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("other", type=Path, help="the root of another checkout")
    parser.add_argument("--datasets", default="texas", help="names from `asgat datasets`, separated by commas")
    parser.add_argument("--model", help="a name from `asgat models`; default: the recipe's")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting in both")
    parser.add_argument("--epochs", type=int, default=100, help="of the longer training; default: 100")
    parser.add_argument("--threads", type=int, help="of both; default: by the work of an epoch")
    parser.add_argument("--python", help="the other checkout's Python; default: that of its .venv, or this one")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each, of which the smallest counts")
    parser.add_argument("--command-time", action="store_true", help="time ten splits of the command, start included")
    parser.add_argument("--json", help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    if options.epochs < 2 or options.repeats < 1:
        parser.error("--epochs must be at least 2, and --repeats at least 1.")
    numbers = compare([checkout(HERE), checkout(options.other, options.python)], options)
    print(f"{numbers['unit']}, smallest of {options.repeats}\n")
    print(f"{'data set':24}{'this':>10}{'other':>10}{'ratio':>8}")
    for row in numbers["rows"]:
        print(f"{row['dataset']:24}{row['this']:10.2f}{row['other']:10.2f}{row['ratio']:8.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
