"""Bands of frequencies silenced in the first layer of trained models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, cast

import numpy as np
import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch import Tensor

from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, MARKERS, OURS, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import Trained, try_train
from asgat.filters import BandStop
from asgat.graph import Graph
from asgat.graph.graph import SelfLoops
from asgat.nn import ASGAT, ASGATConv
from asgat.spectral import ExactOperator, SpectralOperator
from asgat.training.metrics import micro_f1

DATASETS = ["cornell", "texas", "wisconsin", "chameleon", "squirrel"]  # the paper has the first three
QUICK = ["cornell", "texas", "wisconsin"]
WIDTHS = [1.0, 0.5, 0.25]
FORMS = {"two layers": "asgat-cheb", "one layer": "asgat-linear"}
MAX_NODES = 6000  # of an eigen-decomposition
# Width → the bands of which the paper says that one of them matters most.
CLAIMS: dict[str, list[list[float]]] = {
    "1.0": [[1.0, 2.0]],
    "0.5": [[0.5, 1.0], [1.0, 1.5]],
    "0.25": [[0.75, 1.0], [1.0, 1.25]],
}


def bands(width: float) -> list[tuple[float, float]]:
    """[0, 2] cut into bands of a width."""
    return [(i * width, (i + 1) * width) for i in range(round(2.0 / width))]


@contextmanager
def stopped(conv: ASGATConv, low: float, high: float) -> Iterator[None]:
    """While it lasts, the layer's filters answer nothing between two frequencies."""
    filter = conv.filter
    conv.filter = BandStop(filter, low, high)
    try:
        yield
    finally:
        conv.filter = filter


def collect(study: Reproduction) -> Result:
    rows = []
    for dataset in study.pick(DATASETS, QUICK):
        data = study.load(dataset)
        spectrum = cache(partial(_spectrum, study, data.graph))
        for form, model in FORMS.items():
            trained = [one for seed in study.seeds if (one := try_train(study, dataset, model, seed)) is not None]
            if len(trained) < len(study.seeds):
                continue
            runs: list[dict[str, Any]] = []
            for one in trained:
                runs += one.remembered("frequency", partial(ablate, one, spectrum))
            rows.append({"dataset": dataset, "form": form, "model": model, **summarise(runs)})
    return {"widths": WIDTHS, "claims": CLAIMS, "rows": rows}


def _spectrum(study: Reproduction, graph: Graph, loops: SelfLoops) -> SpectralOperator:
    study.say("eigen-decomposition")
    return ExactOperator(graph.with_self_loops(loops), MAX_NODES, device=study.device)


@torch.no_grad()
def ablate(trained: Trained, spectrum: Callable[[SelfLoops], SpectralOperator]) -> list[dict[str, Any]]:
    """Test micro-F1 of every run's model: as it was trained, with exact scores, and with every band silenced.

    Bands are silenced in the exact spectrum: a polynomial of the order a model is trained with cannot follow the edges
    of a narrow band.
    """
    exact = spectrum(trained.config.self_loops)
    own = trained.inputs(exact.device)
    y, found = trained.dataset.y, []
    for run in trained.runs:
        net = cast(ASGAT, trained.load(run, exact.device))
        test = trained.split(run).test

        def score(operator: Any, net: ASGAT = net, test: Any = test) -> float:
            logits = cast(Tensor, net(own[0], operator))
            return micro_f1(y[test], logits.argmax(-1).cpu().numpy()[test])

        row: dict[str, Any] = {"trained": score(own[1]), "none": score(exact)}
        for width in WIDTHS:
            row[str(width)] = []
            for low, high in bands(width):
                with stopped(net.convs[0], low, high):
                    row[str(width)].append(score(exact))
        found.append(row)
    return found


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and spreads over runs; ``drop`` is what silencing a band takes from the same model's score."""
    none = np.array([run["none"] for run in runs])
    cut = []
    for width in WIDTHS:
        scores = np.array([run[str(width)] for run in runs])
        drops = none[:, None] - scores
        for i, (low, high) in enumerate(bands(width)):
            cut.append(
                {
                    "width": width,
                    "low": low,
                    "high": high,
                    "mean": float(scores[:, i].mean()),
                    "std": float(scores[:, i].std()),
                    "drop": float(drops[:, i].mean()),
                    "drop_std": float(drops[:, i].std()),
                }
            )
    return {
        "trained": float(np.mean([run["trained"] for run in runs])),
        "none": float(none.mean()),
        "none_std": float(none.std()),
        "bands": cut,
        "worst": {str(width): worst(cut, width) for width in WIDTHS},
        "runs": len(runs),
    }


def worst(cut: list[dict[str, Any]], width: float) -> list[float] | None:
    """The band whose loss hurts most; None where none hurts."""
    row = max((row for row in cut if row["width"] == width), key=lambda row: row["drop"])
    return [row["low"], row["high"]] if row["drop"] > 0 else None


def tables(result: Result) -> list[Table]:
    shown = []
    for width in WIDTHS:
        words = f"Micro-F1 in percent without a band of width {width:g}, by where it begins"
        table = Table(title=words, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("data set", no_wrap=True)
        table.add_column("layers", no_wrap=True)
        table.add_column("none", justify="right")
        for low, _ in bands(width):
            table.add_column(f"{low:g}", justify="right", no_wrap=True)
        table.add_column("as paper", justify="right", no_wrap=True)
        for row in result["rows"]:
            cells = [f"{100 * cut['mean']:.1f}" for cut in row["bands"] if cut["width"] == width]
            agrees = "yes" if row["worst"][str(width)] in CLAIMS[str(width)] else "no"
            form = row["form"].split()[0]
            table.add_row(title(row["dataset"]), form, f"{100 * row['none']:.1f}", *cells, agrees)
        claimed = " or ".join(f"{low:g}–{high:g}" for low, high in CLAIMS[str(width)])
        table.caption = f"paper (figure only): most is lost without {claimed}"
        shown.append(table)
    return shown


def draw(result: Result) -> dict[str, Any]:
    return {"frequency": _overview(result), "frequency-detail": _detail(result)}


def _overview(result: Result) -> Any:
    figure = new(13.0, 7.0)
    axes = figure.subplots(len(FORMS), len(WIDTHS), sharey=True)
    datasets = list(dict.fromkeys(row["dataset"] for row in result["rows"]))
    for line, form in enumerate(FORMS):
        for axis, width in zip(axes[line], WIDTHS, strict=True):
            cuts = bands(width)
            for row in (row for row in result["rows"] if row["form"] == form):
                i = datasets.index(row["dataset"])
                values = [100 * cut["mean"] for cut in row["bands"] if cut["width"] == width]
                place = np.arange(len(cuts)) + 0.06 * (i - (len(datasets) - 1) / 2)
                axis.plot(place, values, color=COLOURS[i], marker=MARKERS[i], lw=1.3, label=title(row["dataset"]))
                axis.axhline(100 * row["none"], color=COLOURS[i], ls=":", lw=1.1)
            axis.set_xticks(np.arange(len(cuts)), [f"{low:g}–{high:g}" for low, high in cuts],
                            rotation=30 if width < 0.5 else 0, fontsize=8)  # fmt: skip
            axis.set_xlim(-0.5, len(cuts) - 0.5)
            axis.set_title(f"{form}, bands of width {width:g}", fontsize=10)
            plain(axis)
        axes[line][0].set_ylabel("micro-F1 on test nodes, in percent")
    for axis in axes[-1]:
        axis.set_xlabel("frequencies λ silenced in the first layer")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(datasets), frameon=False)
    figure.suptitle("Silenced bands, mean over runs; dotted: the same models with nothing silenced", fontsize=10)
    return figure


def _detail(result: Result) -> Any:
    datasets = list(dict.fromkeys(row["dataset"] for row in result["rows"]))
    figure = new(3.0 * len(datasets) + 0.6, 5.4)
    axes = figure.subplots(len(FORMS), len(datasets), squeeze=False, sharex=True, sharey=True)
    claimed = CLAIMS["0.25"]
    for line, form in enumerate(FORMS):
        for axis, dataset in zip(axes[line], datasets, strict=True):
            row = next((r for r in result["rows"] if (r["dataset"], r["form"]) == (dataset, form)), None)
            if row is None:
                axis.set_visible(False)
                continue
            cuts = [cut for cut in row["bands"] if cut["width"] == 0.25]
            drops, spread = ([100 * cut[key] for cut in cuts] for key in ("drop", "drop_std"))
            colours = [COLOURS[1] if [cut["low"], cut["high"]] in claimed else OURS for cut in cuts]
            axis.bar([cut["low"] + 0.125 for cut in cuts], drops, 0.21, yerr=spread, color=colours,
                     error_kw={"ecolor": "0.25", "lw": 0.9, "capsize": 2})  # fmt: skip
            axis.axhline(0.0, color="0.4", lw=0.8)
            axis.set(xlim=(0, 2), xticks=[0, 0.5, 1, 1.5, 2])
            axis.set_title(f"{title(dataset)}, {form} ({100 * row['none']:.1f} %)", fontsize=9)
            plain(axis, "y")
        axes[line][0].set_ylabel("loss of micro-F1, in points", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("silenced band of λ", fontsize=9)
    figure.suptitle(
        "Bands of width 0.25: loss ± standard deviation over runs; orange: where the paper finds the largest",
        fontsize=10,
    )
    return figure


QUESTION = "Which frequencies do trained models live on? Bands are silenced in the first layer, without retraining."
EXPERIMENT = Experiment("frequency", QUESTION, collect, tables, draw)
