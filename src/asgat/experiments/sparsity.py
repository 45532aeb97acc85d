"""Density of the attention matrix and time of an epoch against k."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.bench.epoch import timer
from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, MARKERS, new, plain, plain_numbers, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import config_of
from asgat.files.atomic import to_json, write_atomic
from asgat.nn import ASGAT
from asgat.training.program import EagerEpochs, one_run
from asgat.training.runner import make_task

DATASETS = ["chameleon", "cora"]
KS: list[int | None] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, None]  # None: all a node reaches
QUICK_KS: list[int | None] = [1, 4, 16, 64]
EPOCHS = 50  # of training before the density is taken
CLAIM = "density grows steadily with k, and ASGAT runs much faster where attention is sparse"


def collect(study: Reproduction) -> Result:
    rows = []
    for dataset in study.pick(DATASETS, DATASETS):
        for k in QUICK_KS if study.quick else KS:
            study.say(f"{dataset}, k = {k or 'all'}")
            try:
                row = remembered(study, f"{dataset}-k={k or 'all'}", partial(measure, study, dataset, k))
            except (AsgatError, torch.OutOfMemoryError) as error:
                study.failed[f"{dataset}, k = {k or 'all'}"] = str(error).splitlines()[0]
            else:
                rows.append({"dataset": dataset, **row})
    return {"model": "asgat-cheb", "claim": CLAIM, "rows": rows}


def remembered(study: Reproduction, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``make`` gives, kept in a file beside the run directories, apart for every kind of device."""
    path = study.runs_folder / "sparsity" / study.device.type / f"{name}.json"
    if not path.exists() or (study.fresh and path not in study.begun):
        write_atomic(path, to_json(make()))
    study.begun.add(path)
    return cast(dict[str, Any], json.loads(path.read_bytes()))


def measure(study: Reproduction, dataset: str, k: int | None) -> dict[str, Any]:
    """Milliseconds of an epoch and, after some training, the density of every layer's attention."""
    data, device = study.load(dataset), study.device
    config = cast(ASGATConfig, config_of(dataset, "asgat-cheb", k=k))
    task = make_task(data, "asgat-cheb", config, device)
    epochs = EagerEpochs(one_run(task, data.splits[0], config))
    for _ in range(2 if study.quick else EPOCHS):
        epochs.run(1)
    net = cast(ASGAT, task.example(config).to(device).eval())
    net.load_state_dict(epochs.program.weights[0])
    with torch.no_grad():
        _, attentions = net(*task.inputs, return_attention_weights=True)
    run = timer(lambda: task.example(config), task.inputs, data, config, device, captured=k is not None)
    times = [run() for _ in range(1 if study.quick else 5)]
    weights = sum(a.heads for a in attentions)
    return {
        "k": k,
        "density": sum(a.heads * a.density() for a in attentions) / weights,
        "density_by_layer": [a.density() for a in attentions],
        "ms_per_epoch": statistics.median(times),
        "nodes": data.num_nodes,
        "heads": config.heads,
    }


def tables(result: Result) -> list[Table]:
    shown = []
    for dataset in dict.fromkeys(row["dataset"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["dataset"] == dataset]
        table = Table(title=f"{title(dataset)}: attention against k ({rows[0]['heads']} heads)", box=SIMPLE_HEAD)
        for heading in ("k", "density in percent", "ms per epoch", "× k = 1"):
            table.add_column(heading, justify="right")
        for row in rows:
            ratio = row["ms_per_epoch"] / rows[0]["ms_per_epoch"]
            density = f"{100 * row['density']:.3f}"
            table.add_row(str(row["k"] or "all"), density, f"{row['ms_per_epoch']:.2f}", f"{ratio:.1f}")
        table.caption = f"paper (figure only): {CLAIM}"
        shown.append(table)
    return shown


def draw(result: Result) -> dict[str, Any]:
    figure = new(10.5, 4.2)
    axes = figure.subplots(1, 2)
    measures = (
        ("density", "attention weights that are not zero, in percent", 100),
        ("ms_per_epoch", "time of an epoch, in milliseconds", 1),
    )
    for axis, (key, label, factor) in zip(axes, measures, strict=True):
        for i, dataset in enumerate(dict.fromkeys(row["dataset"] for row in result["rows"])):
            rows = [row for row in result["rows"] if row["dataset"] == dataset]
            points = [row for row in rows if row["k"] is not None]
            style: dict[str, Any] = {"color": COLOURS[i], "marker": MARKERS[i]}
            axis.plot(
                [r["k"] for r in points], [factor * r[key] for r in points], lw=1.5, label=title(dataset), **style
            )
            for row in (row for row in rows if row["k"] is None):
                style |= {"ms": 11, "mfc": "none", "ls": "none"}
                axis.plot([row["nodes"]], [factor * row[key]], label=f"{title(dataset)}, all nodes it reaches", **style)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", subs=[2, 3, 5])
        axis.set(xlabel="k, nodes attended to per head", ylabel=label)
        plain_numbers(axis)
        axis.yaxis.set_minor_formatter("{x:g}")
        plain(axis)
    axes[0].legend(frameon=False, fontsize=9)
    device = result["about"]["device"]
    figure.suptitle(
        f"Attention density and time of an epoch, training and evaluation, against k ({device})", fontsize=10
    )
    return {"sparsity": figure}


QUESTION = "How dense is the attention matrix, and how long does an epoch take, as k grows?"
EXPERIMENT = Experiment("sparsity", QUESTION, collect, tables, draw)
