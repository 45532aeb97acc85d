"""Bands of frequencies removed in the first layer of trained models."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np
import torch

from asgat.filters import BandStop
from asgat.graph.graph import SelfLoops
from asgat.nn import ASGAT, ASGATConv
from asgat.spectral import ExactOperator, SpectralOperator
from reproduce.experiment import EXPERIMENTS, Result, Row, Table, datasets_of, mean_std, row_of, rows_of
from reproduce.plotting import COLOURS, ERROR_BARS, MARKERS, OURS, dataset_title, panels, percent, shared_legend
from reproduce.study import Study, Trained

WIDTHS: list[float] = EXPERIMENTS["frequency"]["widths"]
FORMS = {"two layers": "asgat-cheb", "one layer": "asgat-linear"}
MAX_NODES = 6000  # of an eigen-decomposition


def bands(width: float) -> list[tuple[float, float]]:
    """[0, 2] divided into bands of a width."""
    return [(i * width, (i + 1) * width) for i in range(round(2.0 / width))]


@contextmanager
def band_removed(conv: ASGATConv, low: float, high: float) -> Iterator[None]:
    """Within the body, the responses of the layer's filters are zero between two frequencies."""
    filter = conv.filter
    conv.filter = BandStop(filter, low, high)
    try:
        yield
    finally:
        conv.filter = filter


def rows(study: Study, dataset: str) -> Iterator[Row]:
    @cache
    def spectrum(loops: SelfLoops) -> SpectralOperator:
        study.progress("eigen-decomposition")
        graph = study.load(dataset).graph.with_self_loops(loops)
        return ExactOperator(graph, MAX_NODES, device=study.device)

    for form, model in FORMS.items():
        trained = study.train_all_seeds(dataset, model)
        if trained is not None:
            runs = [row for one in trained for row in ablate(one, spectrum)]
            yield {"dataset": dataset, "form": form, "model": model, **summarise(runs)}


@torch.no_grad()
def ablate(trained: Trained, spectrum: Callable[[SelfLoops], SpectralOperator]) -> list[Row]:
    """Test micro-F1 of every run's model: as it was trained, with exact scores, and without each band.

    Bands are removed from the exact spectrum: a polynomial of the order used in training cannot follow the edges of a
    narrow band.
    """
    exact = spectrum(trained.config.self_loops)
    x, operator = trained.inputs(exact.device)
    found = []
    for run in trained.runs:
        net = cast(ASGAT, trained.load(run, exact.device))
        row: Row = {
            "trained": trained.test_score(run, net(x, operator)),
            "none": trained.test_score(run, net(x, exact)),
        }
        for width in WIDTHS:
            row[str(width)] = []
            for low, high in bands(width):
                with band_removed(net.convs[0], low, high):
                    row[str(width)].append(trained.test_score(run, net(x, exact)))
        found.append(row)
    return found


def summarise(runs: list[Row]) -> Row:
    """Means and standard deviations over runs; ``drop`` is the loss of the same model's score without a band."""
    none = np.array([run["none"] for run in runs])
    cut = []
    for width in WIDTHS:
        scores = np.array([run[str(width)] for run in runs])
        drops = none[:, None] - scores
        cut += [
            {
                "width": width,
                "low": low,
                "high": high,
                "mean": float(scores[:, i].mean()),
                "std": float(scores[:, i].std()),
                "drop": float(drops[:, i].mean()),
                "drop_std": float(drops[:, i].std()),
            }
            for i, (low, high) in enumerate(bands(width))
        ]
    return {
        "trained": float(np.mean([run["trained"] for run in runs])),
        "none": float(none.mean()),
        "none_std": float(none.std()),
        "bands": cut,
        "worst": {str(width): worst(cut, width) for width in WIDTHS},
        "runs": len(runs),
    }


def worst(cut: list[Row], width: float) -> list[float] | None:
    """The band without which most is lost; None if nothing is lost without any."""
    row = max((row for row in cut if row["width"] == width), key=lambda row: row["drop"])
    return [row["low"], row["high"]] if row["drop"] > 0 else None


def of_width(row: Row, width: float) -> list[Row]:
    return [cut for cut in row["bands"] if cut["width"] == width]


def tables(result: Result) -> list[Table]:
    shown = []
    for width in WIDTHS:
        claims = result["claims"][str(width)]
        rows = [
            (
                dataset_title(row["dataset"]),
                row["form"].split()[0],
                mean_std(row["none"]),
                *(mean_std(cut["mean"]) for cut in of_width(row, width)),
                "yes" if row["worst"][str(width)] in claims else "no",
            )
            for row in result["rows"]
        ]
        headings = ("data set", "layers", "none", *(f"{low:g}" for low, _ in bands(width)), "as paper")
        title = f"Micro-F1 in percent without a band of width {width:g}, by its lower end"
        claimed = " or ".join(f"{low:g}–{high:g}" for low, high in claims)
        shown.append(Table(title, headings, rows, f"paper (figure only): most is lost without {claimed}"))
    return shown


def draw(result: Result) -> dict[str, Any]:
    return {"frequency": _overview(result), "frequency-detail": _detail(result)}


def _overview(result: Result) -> Any:
    figure, axes = panels(13.0, 7.0, len(FORMS), len(WIDTHS), sharey=True)
    datasets = datasets_of(result)
    for line, form in enumerate(FORMS):
        for axis, width in zip(axes[line], WIDTHS, strict=True):
            cuts = bands(width)
            for row in rows_of(result, form=form):
                i = datasets.index(row["dataset"])
                (values,) = percent(of_width(row, width), "mean")
                place = np.arange(len(cuts)) + 0.06 * (i - (len(datasets) - 1) / 2)
                label = dataset_title(row["dataset"])
                axis.plot(place, values, color=COLOURS[i], marker=MARKERS[i], lw=1.3, label=label)
                axis.axhline(100 * row["none"], color=COLOURS[i], ls=":", lw=1.1)
            axis.set_xticks(np.arange(len(cuts)), [f"{low:g}–{high:g}" for low, high in cuts],
                            rotation=30 if width < 0.5 else 0, fontsize=8)  # fmt: skip
            axis.set_xlim(-0.5, len(cuts) - 0.5)
            axis.set_title(f"{form}, bands of width {width:g}", fontsize=10)
    figure.supylabel("micro-F1 on test nodes, in percent", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("frequencies λ removed in the first layer")
    shared_legend(figure, axes, len(datasets))
    figure.suptitle("Removed bands, mean over runs; dotted: the same models with no band removed", fontsize=10)
    return figure


def _detail(result: Result) -> Any:
    datasets = datasets_of(result)
    size = 3.0 * len(datasets) + 0.6, 5.4
    figure, axes = panels(*size, len(FORMS), len(datasets), "y", sharex=True, sharey=True)
    for line, form in enumerate(FORMS):
        for axis, dataset in zip(axes[line], datasets, strict=True):
            row = row_of(result, dataset=dataset, form=form)
            if row is None:
                axis.set_visible(False)
                continue
            cuts = of_width(row, 0.25)
            drops, spread = percent(cuts, "drop", "drop_std")
            colours = [COLOURS[1] if [cut["low"], cut["high"]] in result["claims"]["0.25"] else OURS for cut in cuts]
            place = [cut["low"] + 0.125 for cut in cuts]
            axis.bar(place, drops, 0.21, yerr=spread, color=colours, error_kw=ERROR_BARS)
            axis.axhline(0.0, color="0.4", lw=0.8)
            axis.set(xlim=(0, 2), xticks=[0, 0.5, 1, 1.5, 2])
            axis.set_title(f"{dataset_title(dataset)}, {form} ({100 * row['none']:.1f} %)", fontsize=9)
    figure.supylabel("loss of micro-F1, in points", fontsize=9)
    figure.supxlabel("removed band of λ", fontsize=9)
    title = "Bands of width 0.25: loss ± standard deviation over runs; orange: where the paper finds the largest"
    figure.suptitle(title, fontsize=10)
    return figure
