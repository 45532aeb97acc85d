"""Figures of trained models and of their scores, and what all figures share: style and file."""

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from asgat.explain.head_responses import HeadResponses, Kind, head_responses
from asgat.files.atomic import write_atomic
from asgat.graph.graph import Floats, Graph
from asgat.nn.attention_model import AttentionModel

MOST_CURVES = 8  # of a panel


def new_figure(width: float, height: float) -> Any:
    """An empty figure; its size is in inches."""
    from matplotlib.figure import Figure  # not pyplot, which would change a notebook's backend and open figures

    return Figure(figsize=(width, height), layout="constrained")


def style_axis(axis: Any, grid: str = "both") -> None:
    """A light grid behind the data, no frame at the top and right."""
    axis.grid(axis=grid, color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def write_png(figure: Any, path: Path, dpi: int = 150) -> Path:
    """Writes a figure as a PNG file and returns its path."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    write_atomic(path, buffer.getvalue())
    return path


def filter_figure(model: AttentionModel, graph: Graph, path: Path, title: str) -> Path | None:
    """Draws the learned response of every head over λ above the graph's spectral density; None if there is no head.

    A panel holds the attention heads or the filter heads of a layer, at most eight of them. The scale of a response
    matters (softmax sharpens with it) and so does its shape; the level of an attention head matters little.
    """
    from matplotlib import colormaps

    held = head_responses(model, graph)
    panels = list(_panels(held, model.layer_name))
    if not panels:
        return None
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    figure = new_figure(4.8 * columns + 1.0, 4.4 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (name, kind, first, response) in zip(axes, panels, strict=False):
        behind = axis.twinx()
        behind.fill_between(held.frequency, held.density, color="0.88", linewidth=0)
        behind.set_ylim(0, 1.6 * max(np.quantile(held.density, 0.995), 1e-9))
        behind.set_yticks([])
        axis.set_zorder(behind.get_zorder() + 1)
        axis.patch.set_visible(False)
        colours = colormaps["viridis"](np.linspace(0.0, 0.9, response.shape[1]))
        for head, (colour, values) in enumerate(zip(colours, response.T, strict=True), start=first):
            axis.plot(held.frequency, values, color=colour, lw=1.8, label=f"head {head}: {held.shape(values, kind)}")
        axis.axhline(0.0, color="0.6", lw=0.6)
        axis.set(xlim=(0, 2), xlabel="frequency λ", title=name)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize=7, frameon=False, ncols=3)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[::columns]:
        axis.set_ylabel("learned response g(λ)")
    axes[columns - 1].text(
        1.02, 0.5, "grey: density of the graph's eigenvalues", transform=axes[columns - 1].transAxes,
        rotation=90, va="center", fontsize=8, color="0.4",
    )  # fmt: skip
    figure.suptitle(title)
    return write_png(figure, path)


def _panels(held: HeadResponses, layer_name: str) -> Iterator[tuple[str, Kind, int, Floats]]:
    """Title and kind of every panel, the number of its first head, and the responses of its heads, [n, heads]."""
    kinds: dict[Kind, list[Floats]] = {"attention": held.attention, "filters": held.filters}
    for number, of_layer in enumerate(zip_longest(*kinds.values()), start=1):
        for kind, responses in zip(kinds, of_layer, strict=True):
            if responses is None:
                continue
            parts = np.array_split(responses, -(-responses.shape[1] // MOST_CURVES), axis=1)
            first = 1
            for part in parts:
                name = f"{layer_name} {number}" + (f", {kind}" if held.filters else "")
                heads = f", heads {first} to {first + part.shape[1] - 1}" if len(parts) > 1 else ""
                yield name + heads, kind, first, part
                first += part.shape[1]


def comparison_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Draws test scores on one data set, bars of mean and standard deviation; rows are as in ``result.json``."""
    scores = {"micro_f1": ("micro-F1", "#1b6ca8"), "macro_f1": ("macro-F1", "#f2a65a")}
    if "roc_auc" in rows[0]:
        scores = {"roc_auc": ("ROC-AUC", "#1b6ca8"), "micro_f1": ("micro-F1", "#f2a65a")}
    figure = new_figure(7.2, 1.5 + 0.5 * len(rows))
    axis = figure.subplots()
    thickness = 0.4
    for place, (score, (label, colour)) in enumerate(scores.items()):
        means, spreads = ([100.0 * row[score][key] for row in rows] for key in ("mean", "std"))
        heights = np.arange(len(rows)) + (place - 0.5) * thickness
        axis.barh(heights, means, thickness, xerr=spreads, color=colour, label=label,
                  error_kw={"ecolor": "0.25", "capsize": 2.5, "lw": 1.0})  # fmt: skip
        for height, mean, spread in zip(heights, means, spreads, strict=True):
            text = f"{mean:.1f} ± {spread:.1f}"
            axis.annotate(text, (mean + spread, height), (4, 0), textcoords="offset points", va="center", fontsize=8)
    runs = len(rows[0]["runs"])
    axis.set_yticks(np.arange(len(rows)), [row["model"] for row in rows])
    axis.margins(y=0.02)
    axis.invert_yaxis()
    axis.set(xlim=(0, 122), xticks=range(0, 101, 20), xlabel="test score, in percent")
    axis.set_title(f"{rows[0]['dataset']}: mean ± standard deviation over {runs} run{'s' if runs > 1 else ''}")
    style_axis(axis, "x")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return write_png(figure, path)
