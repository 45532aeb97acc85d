"""Density of the attention matrix and time of an epoch by k."""

import statistics
from collections.abc import Iterator
from typing import Any, cast

import torch

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.nn import ASGAT
from asgat.training.runner import make_task
from reproduce.bench.timing import asgat_timer, timed_training
from reproduce.experiment import Result, Row, Table, datasets_of, rows_of
from reproduce.plotting import COLOURS, MARKERS, dataset_title, panels
from reproduce.study import Study, study_config

KS: list[int | None] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, None]  # None: all nodes that can be reached
QUICK_KS: list[int | None] = [1, 4, 16, 64]
EPOCHS = 50  # of training before the density is measured


def rows(study: Study, dataset: str) -> Iterator[Row]:
    for k in QUICK_KS if study.quick else KS:
        what = f"{dataset}, k = {k or 'all'}"
        study.progress(what)
        try:
            yield {"dataset": dataset, **measure(study, dataset, k)}
        except (AsgatError, torch.OutOfMemoryError) as error:
            study.failed[what] = str(error).splitlines()[0]


def measure(study: Study, dataset: str, k: int | None) -> Row:
    """Milliseconds of an epoch and, after some training, the density of every layer's attention."""
    data, device = study.load(dataset), study.device
    config = cast(ASGATConfig, study_config(dataset, "asgat-cheb", k=k))
    task = make_task(data, "asgat-cheb", config, device)
    _, result = timed_training(task.build, task.inputs, data, config, 2 if study.quick else EPOCHS)
    net = cast(ASGAT, task.build(config).to(device).eval())
    net.load_state_dict(result.state)
    with torch.no_grad():
        _, attentions = net(*task.inputs, return_attention_weights=True)
    run = asgat_timer(task.build, task.inputs, data, config)
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
    for dataset in datasets_of(result):
        rows = rows_of(result, dataset=dataset)
        first = rows[0]["ms_per_epoch"]
        cells = [
            (str(row["k"] or "all"), f"{100 * row['density']:.3f}", f"{row['ms_per_epoch']:.2f}",
             f"{row['ms_per_epoch'] / first:.1f}")
            for row in rows
        ]  # fmt: skip
        title = f"{dataset_title(dataset)}: attention by k ({rows[0]['heads']} heads)"
        headings = ("k", "density in percent", "ms per epoch", "× k = 1")
        shown.append(Table(title, headings, cells, f"paper (figure only): {result['claim']}"))
    return shown


def draw(result: Result) -> dict[str, Any]:
    figure, (axes,) = panels(10.5, 4.2, 1, 2)
    measures = (
        ("density", "attention weights that are not zero, in percent", 100),
        ("ms_per_epoch", "time of an epoch, in milliseconds", 1),
    )
    for axis, (key, label, factor) in zip(axes, measures, strict=True):
        for i, dataset in enumerate(datasets_of(result)):
            rows, name = rows_of(result, dataset=dataset), dataset_title(dataset)
            points = [row for row in rows if row["k"] is not None]
            style: dict[str, Any] = {"color": COLOURS[i], "marker": MARKERS[i]}
            axis.plot([r["k"] for r in points], [factor * r[key] for r in points], lw=1.5, label=name, **style)
            for row in (row for row in rows if row["k"] is None):
                style |= {"ms": 11, "mfc": "none", "ls": "none"}
                axis.plot([row["nodes"]], [factor * row[key]], label=f"{name}, all reachable nodes", **style)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", subs=[2, 3, 5])
        axis.set(xlabel="k, nodes attended to per head", ylabel=label)
        for which, minor in ((axis.xaxis, ""), (axis.yaxis, "{x:g}")):  # plain numbers instead of powers
            which.set_major_formatter("{x:g}")
            which.set_minor_formatter(minor)
    axes[0].legend(frameon=False, fontsize=9)
    device = result["about"]["device"]
    figure.suptitle(f"Attention density and time of an epoch, training and evaluation, by k ({device})", fontsize=10)
    return {"sparsity": figure}
