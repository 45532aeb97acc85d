"""Ten million nodes on two cores: convert, order, build the table, train in mini-batches, predict, each step timed.

python benchmarks/ten_million.py --nodes 10000000 --folder big --json ten-million.json
python benchmarks/ten_million.py --folder big --kill convert=60 table=60 train=20 predict=2 --json ten-million.json
python benchmarks/ten_million.py --nodes 1000000 --folder big --only make convert

A step that is done is not done again: its figures are in ``FOLDER/steps.json``. The seconds after which training or
predicting is killed count from the first checkpoint, which is written after an epoch, and from the first row group, so
that they are killed while they train and write.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

COMMUNITY = 1000  # nodes
INSIDE = 0.9  # share of edges inside a community
HOMOPHILY = 0.3  # share of edges between nodes of one class
SETTINGS = {
    "order": 5, "candidates": 16, "k": 8, "heads": 4, "hidden": 16, "storage": "float16", "form": "table",
    "builder": "truncated", "neighbourhood": 64, "normalize_features": "false", "dropout": 0.1,
    "filter_activation": "none", "lr": 0.01, "batch_size": 8192, "epochs": 2, "patience": 2, "max_restarts": 0,
}  # fmt: skip


def make(nodes: int, degree: float, out: Path, features: int = 64, classes: int = 8, labelled: float = 0.01) -> None:
    """Edges, features, labels and a split of a block model as .npy files, in bounded memory.

    Communities of 1,000 nodes; nine in ten edges stay inside theirs. The class of a node is its place in the community
    modulo ``classes``; three in ten edges join nodes of one class. Node numbers are shuffled (n → a n + b modulo N), so
    that an order with locality has to be found. 1 % of the nodes each are for training, validation and test.
    """
    out.mkdir(parents=True, exist_ok=True)
    rng, step = np.random.default_rng(0), 1 << 20
    factor = next(a for a in range(int(0.618 * nodes) | 1, nodes, 2) if np.gcd(a, nodes) == 1)

    def shuffled(v: Any) -> Any:
        return (v * factor + 12345) % nodes

    count = round(nodes * degree / 2)
    edges = np.lib.format.open_memmap(out / "edges.npy", mode="w+", dtype=np.int32, shape=(2, count))
    for start in range(0, count, step):
        size = min(step, count - start)
        first = rng.integers(nodes, size=size)
        inside = first - first % COMMUNITY + rng.integers(COMMUNITY, size=size)
        second = np.where(rng.random(size) < INSIDE, inside, rng.integers(nodes, size=size))
        label = np.where(rng.random(size) < HOMOPHILY, first, second) % classes
        second = np.minimum(second - second % classes + label, nodes - 1)
        edges[:, start : start + size] = shuffled(first), shuffled(second)
    edges.flush()
    x = np.lib.format.open_memmap(out / "x.npy", mode="w+", dtype=np.float16, shape=(nodes, features))
    y, split = np.empty(nodes, dtype=np.int32), np.zeros(nodes, dtype=np.uint8)
    means = rng.choice(np.array([-1, 1], dtype=np.float32), size=(classes, features))
    inverse = pow(factor, -1, nodes)
    for start in range(0, nodes, step):
        stop = min(nodes, start + step)
        before = (np.arange(start, stop) - 12345) % nodes * inverse % nodes  # the number before shuffling
        y[start:stop] = before % classes
        x[start:stop] = rng.standard_normal((stop - start, features), dtype=np.float32) + 0.3 * means[y[start:stop]]
        draw = rng.random(stop - start)
        split[start:stop] = np.where(draw < 3 * labelled, 1 + (draw // labelled).astype(np.uint8) % 3, 0)
    x.flush()
    np.save(out / "y.npy", y)
    np.save(out / "split.npy", split)


STARTED = {"train": "run/unfinished.safetensors", "predict": ".predictions.parquet.*"}
"""Files that show that a step is in the middle of its work."""


class Memory(threading.Thread):
    """The peak of a process: memory that must be there, and that with mapped files, in GiB."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        super().__init__(daemon=True)
        self.process, self.anonymous, self.resident = process, 0.0, 0.0

    def run(self) -> None:
        while self.process.poll() is None:
            try:
                text = Path(f"/proc/{self.process.pid}/status").read_text()
            except OSError:
                break
            held = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines() if line.startswith("Rss")}
            self.anonymous = max(self.anonymous, (held.get("RssAnon", 0) + held.get("RssShmem", 0)) / 2**20)
            self.resident = max(self.resident, sum(held.values()) / 2**20)
            time.sleep(0.2)


def run(
    command: list[str], kill_after: float | None = None, started_by: tuple[Path, str] | None = None
) -> dict[str, Any]:
    """Runs a command, or kills it some seconds after its start or after a file appears; returns times and peak memory.

    ``started_by`` is the folder of that file and its name as a pattern.
    """
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    memory = Memory(process)
    memory.start()
    try:
        while kill_after is not None and started_by is not None and process.poll() is None:
            if any(started_by[0].glob(started_by[1])):
                break
            time.sleep(0.05)
        text, _ = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        text, _ = process.communicate()
    memory.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    usage = {"cpu_seconds": cpu, "anonymous_gib": memory.anonymous, "resident_gib": memory.resident}
    return {"seconds": time.perf_counter() - started, **usage, "code": process.returncode, "last": text[-600:]}


def size_gb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9 if folder.exists() else 0.0


def steps(folder: Path) -> dict[str, list[str]]:
    """The commands, by step."""
    raw, graph, out = folder / "raw", folder / "graph", folder / "run"
    program = [sys.executable, "-m", "asgat", "--verbose"]
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    files = ["--features", str(raw / "x.npy"), "--labels", str(raw / "y.npy"), "--splits", str(raw / "split.npy")]
    convert = [*program, "convert", str(raw / "edges.npy"), str(graph), *files, "--order", "rcm"]
    model = ["--model", "asgat-cheb", *settings]
    return {
        "convert": convert,
        "table": [*convert, "--table", *model],
        "train": [*program, "train", str(graph), *model, "--splits", "0", "--out", str(out)],
        "predict": [*program, "predict", str(out), "--graph", str(graph), "--out", str(folder / "predictions.parquet")],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--degree", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="steps: make, convert, table, train, predict")
    parser.add_argument("--kill", nargs="*", default=[], metavar="STEP=SECONDS", help="kill a step after that time")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    file = options.folder / "steps.json"
    done: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"nodes": options.nodes}
    killed = {name: float(seconds) for name, _, seconds in (one.partition("=") for one in options.kill)}

    def note(name: str, figures: dict[str, Any]) -> None:
        done[name] = {**figures, "date": time.strftime("%Y-%m-%d"), "load": os.getloadavg()[0]}
        file.write_text(json.dumps(done, indent=2) + "\n")
        print(name, json.dumps(done[name]), flush=True)

    options.folder.mkdir(parents=True, exist_ok=True)
    if "make" not in done and (not options.only or "make" in options.only):
        started = time.perf_counter()
        make(options.nodes, options.degree, options.folder / "raw")
        note("make", {"seconds": time.perf_counter() - started, "gb": size_gb(options.folder / "raw")})
    for name, command in steps(options.folder).items():
        if name in done or (options.only and name not in options.only):
            continue
        if name in killed and f"{name} killed" not in done:
            shown = (options.folder, STARTED[name]) if name in STARTED else None
            note(f"{name} killed", run(command, killed[name], shown))
        figures = run(command)
        note(name if figures["code"] == 0 else f"{name} failed", {**figures, "gb": size_gb(options.folder)})
        if figures["code"]:
            raise SystemExit(figures["last"])
    done["disk_free_gb"] = shutil.disk_usage(options.folder).free / 1e9
    if options.json:
        options.json.write_text(json.dumps(done, indent=2) + "\n")


if __name__ == "__main__":
    main()
