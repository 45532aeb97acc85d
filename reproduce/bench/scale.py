"""How time and memory grow with the graph: block models of growing size, each in a separate process."""

import math
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import torch

from asgat.memory import keep_freed_memory
from asgat.nn.registry import make_config

_SHARED = dict(
    order=8, heads=4, k=8, candidates=48, form="table", builder="truncated", dropout=0.1, normalize_features=False
)
SETTINGS: dict[str, dict[str, Any]] = {
    "asgat-cheb": {**_SHARED, "hidden": 16},
    "asgat-deep": {**_SHARED, "hidden": 64, "layers": 2, "channels": "attention+filters"},
}
"""The models that are measured, and their settings."""

EPOCHS = 5


def bench_scale(
    nodes: list[int], device: torch.device, progress: Callable[[str], None], model: str = "asgat-cheb"
) -> dict[str, Any]:
    """Rows of build time, epoch time and peak memory, and growth exponents fitted over the larger sizes."""
    rows: list[dict[str, Any]] = []
    for count in sorted(nodes, reverse=True):  # the largest decides whether all of them reuse memory
        progress(f"{count:,} nodes")
        reuse = rows[0]["memory_reused"] if rows else True
        with get_context("spawn").Pool(1) as pool:  # peak memory is measured per process
            rows.append(pool.apply(measure, (count, str(device), model, reuse)))
    rows.reverse()
    return {
        "model": model,
        "rows": rows,
        "exponent_build": exponent(rows, "build_s"),
        "exponent_epoch": exponent(rows, "epoch_s"),
        "settings": SETTINGS[model],
    }


def exponent(rows: list[dict[str, Any]], key: str) -> float | None:
    """The power of N with which a value grows, by least squares over the sizes within a factor 10 of the largest."""
    largest = max(row["nodes"] for row in rows)
    points = [(math.log(row["nodes"]), math.log(row[key])) for row in rows if row["nodes"] * 10 >= largest]
    if len({size for size, _ in points}) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def measure(nodes: int, device_name: str, name: str = "asgat-cheb", reuse: bool = True) -> dict[str, Any]:
    """Builds the table of one block model, trains a few epochs and certifies a sample of rows.

    Memory is reused as in training (:func:`asgat.memory.keep_freed_memory`), unless ``reuse`` is false.
    """
    from asgat.data import contextual_sbm
    from asgat.nn.attention_model import AttentionModel
    from asgat.training.runner import make_task, step_bytes
    from reproduce.bench.timing import timed_training

    device = torch.device(device_name)
    data = contextual_sbm(num_nodes=nodes, mean_degree=10.0, homophily=0.2, num_features=64, seed=0)
    config = make_config(name, **SETTINGS[name])
    started = time.perf_counter()
    task = make_task(data, name, config, device)
    build_s = time.perf_counter() - started
    reused = reuse and keep_freed_memory(step_bytes(data, config, device))
    epoch_ms, result = timed_training(task.build, task.inputs, data, config, EPOCHS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    model, operator = task.example(config).to(device), task.inputs[1]
    assert isinstance(model, AttentionModel)
    model.load_state_dict(result.state)
    certificate = model.certificates(operator)[0]
    return {
        "nodes": nodes,
        "edges": data.graph.num_entries,
        "build_s": build_s,
        "epoch_s": epoch_ms / 1000,
        "peak_memory_mb": peak,
        "memory_reused": reused,
        "candidates_per_node": operator.table.candidates_per_node,
        "certified_share": certificate.share,
        "mean_bound": certificate.mean_bound,
        "max_bound": certificate.max_bound,
    }
