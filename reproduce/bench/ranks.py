"""Training on several ranks: block models as files, converted and trained on by the commands that users run."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asgat.errors import AsgatError
from reproduce.bench.scale import SETTINGS, exponent

DEGREE = 20.0
EPOCHS = 7  # the first two compile
OWN = {"asgat-deep": {"order": 6, "k": 5, "candidates": 32}}  # smaller than on one process


def bench_ranks(sizes: list[int], ranks: int, progress: Callable[[str], None], model: str) -> dict[str, Any]:
    """Rows of seconds and memory by the number of nodes, and the exponent of an epoch's growth."""
    settings = {**SETTINGS[model], **OWN.get(model, {}), "epochs": EPOCHS, "patience": EPOCHS, "max_restarts": 0}
    rows = []
    for nodes in sizes:
        progress(f"{nodes:,} nodes")
        with tempfile.TemporaryDirectory() as place:
            rows.append({"nodes": nodes, "ranks": ranks, **measure(nodes, ranks, model, settings, Path(place))})
    return {"model": model, "rows": rows, "exponent_epoch": exponent(rows, "epoch_s"), "settings": settings}


def measure(nodes: int, ranks: int, model: str, settings: dict[str, Any], place: Path) -> dict[str, Any]:
    """Converts and trains; table and epoch in seconds, and the peak memory of all ranks, with mapped files."""
    from asgat.data import contextual_sbm

    data = contextual_sbm(num_nodes=nodes, mean_degree=DEGREE, homophily=0.2, num_features=64, seed=0)
    for name, array in (("edges", data.graph.edges_once()[0]), ("x", data.x), ("y", data.y)):
        np.save(place / f"{name}.npy", array)
    asgat, graph, out = ["-m", "asgat"], place / "graph", place / "run"
    files = ["--features", place / "x.npy", "--labels", place / "y.npy"]
    _run([*asgat, "convert", place / "edges.npy", graph, *files])
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={str(value).lower()}")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    _run([*torchrun, *asgat, "train", graph, "--distributed", "--splits", "0", "--model", model, *given, "--out", out])
    row = json.loads((out / "result.json").read_bytes())["rows"][0]
    found = {key: row[key] for key in ("epoch_s", "peak_memory_mb", "micro_f1")}
    return {"edges": data.graph.num_entries, "build_s": max(part["build_s"] for part in row["ranks"]), **found}


def _run(words: list[Any]) -> None:
    command = [sys.executable, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AsgatError(f"`{' '.join(command)}` ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
