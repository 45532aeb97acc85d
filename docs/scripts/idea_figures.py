"""Draws the figures of understand.md: python docs/scripts/idea_figures.py"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from asgat.data import load_dataset
from asgat.filters import SpectralFilter
from asgat.graph import Graph
from asgat.nn.attention import attend
from asgat.report.figures import new_figure, style_axis, write_png
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

FIGURES = Path(__file__).resolve().parents[1] / "figures"
CLASSES = np.array(["#1b6ca8", "#f2a65a"])
GREY, BOLD = "0.75", "#b3261e"


class Fixed(SpectralFilter):
    """Two responses that no training changes: low-pass, and both ends of the spectrum."""

    NAMES = ("low-pass: attends to neighbours", "both ends: attends past neighbours")

    def __init__(self) -> None:
        super().__init__(2)
        self.scale = nn.Parameter(torch.tensor(5.0))

    def reset_parameters(self) -> None:
        pass

    def forward(self, frequency: Tensor) -> Tensor:
        shapes = torch.exp(-3 * frequency), (frequency - 1).abs() ** 2.5
        return self.scale * torch.stack(shapes, dim=-1)


def market(side: int = 12, degree: int = 3, seed: int = 3) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Buyers on the left, sellers on the right, almost all edges between them: graph, classes, places on the page."""
    draw = np.random.default_rng(seed)
    edges = [(buyer, side + (buyer + step) % side) for buyer in range(side) for step in (0, 1, 4)[:degree]]
    edges += [(2, 3), (side + 5, side + 6)]
    x = np.repeat([0.0, 1.0], side) + draw.uniform(-0.22, 0.22, 2 * side)
    y = np.tile(np.linspace(0, 1, side), 2) + draw.uniform(-0.02, 0.02, 2 * side)
    return Graph.from_edges(np.array(edges).T), np.repeat([0, 1], side), np.stack([x, y], axis=1)


def draw_graph(axis: Any, graph: Graph, classes: np.ndarray, place: np.ndarray) -> None:
    pairs, _ = graph.edges_once()
    for u, v in pairs.T:
        axis.plot(*place[[u, v]].T, color=GREY, lw=0.7, zorder=1)
    axis.scatter(*place.T, c=CLASSES[classes], s=42, zorder=3, edgecolors="white", linewidths=0.6)
    axis.set_axis_off()
    axis.margins(0.08)


def filters_figure() -> Path:
    """Two responses, and the nodes that one node attends to through each."""
    graph, classes, place = market()
    node, k = 6, 4
    filter = Fixed()
    with torch.no_grad():
        attention = attend(ExactOperator(graph), filter, k + 1)
        frequency = torch.linspace(0, 2, 201)
        response = filter(frequency)
    figure = new_figure(8.0, 4.6)
    axes = figure.subplots(2, 2, height_ratios=(1, 2.2))
    for head in range(2):
        curve, net = axes[:, head]
        curve.plot(frequency, response[:, head], color=BOLD, lw=2)
        curve.set(xlim=(0, 2), ylim=(0, None), title=Fixed.NAMES[head], xlabel="frequency λ", yticks=[])
        style_axis(curve)
        draw_graph(net, graph, classes, place)
        for other, weight in zip(attention.index[head, node], attention.weight[head, node], strict=True):
            if int(other) != node:
                net.plot(*place[[node, int(other)]].T, color=BOLD, lw=1 + 7 * float(weight), alpha=0.75, zorder=2)
        net.scatter(*place[node], s=130, facecolors="none", edgecolors="black", linewidths=1.8, zorder=4)
    axes[0, 0].set_ylabel("response g(λ)")
    return write_png(figure, FIGURES / "idea-filters.png", dpi=110)


def certificate_figure() -> Path:
    """Two rows of a candidate table: the scores of all nodes, and the bound on those that are no candidates."""
    graph, k, head = load_dataset("csbm").graph, 6, 1
    filter = Fixed()
    operator = TableOperator(graph, order=10, candidates=6, cap=6)
    table = operator.table
    with torch.no_grad():
        score = operator.top(filter, k)[1][head]
        truth = ChebyshevOperator(graph, order=10).scores(filter)[1][head]
        c = operator.coefficients(filter)[head].double()
    left_out = torch.maximum(c * table.above, c * table.below).sum(dim=1)
    gap = (left_out - score[:, -1]).masked_fill(table.complete | score[:, -1].isneginf(), 0.0)
    figure = new_figure(9.6, 3.2)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, node in zip(axes, (int(gap.argmin()), int(gap.argmax())), strict=True):
        candidates = table.index[table.indptr[node] : table.indptr[node + 1]].long()
        order = truth[node].argsort(descending=True)[:40]
        is_candidate = torch.isin(order, candidates)
        places = torch.arange(len(order))
        kept = is_candidate & (is_candidate.cumsum(0) <= k)
        for chosen, colour, label in (
            (kept, BOLD, f"kept: the {k} best candidates"),
            (is_candidate & ~kept, "#1b6ca8", "other candidates"),
            (~is_candidate, GREY, "no candidates: never scored"),
        ):
            axis.scatter(places[chosen], truth[node, order][chosen], s=16, color=colour, label=label, zorder=3)
        axis.axhline(float(score[node, -1]), color=BOLD, lw=1.2, ls="--", label="s: lowest score kept")
        axis.axhline(float(left_out[node]), color="0.3", lw=1.2, label="B: no other node scores more")
        exact = gap[node] < 0
        title = "B below s: proven exact" if exact else f"B above s: off by at most ε = {float(gap[node]):.3f}"
        axis.set(title=f"node {node}: {title}", xlabel="nodes by true score")
        style_axis(axis)
    axes[0].set_ylabel("score ψ")
    axes[1].legend(fontsize=8, frameon=False)
    return write_png(figure, FIGURES / "idea-certificate.png", dpi=110)


def label(axis: Any, x: float, y: float, text: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.4", "fc": colour, "ec": "0.4"}
    axis.text(x, y, text, ha="center", va="center", bbox=box, zorder=2)


def cover_figure() -> Path:
    """A directed graph of four nodes and its double cover."""
    names = ["farm", "mill", "bakery", "shop"]
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    figure = new_figure(8.4, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    ring = np.array([(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
    arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 19, "shrinkB": 19, "lw": 1.4}
    for u, v in edges:
        left.annotate("", ring[v], ring[u], arrowprops=arrow)
    for name, (x, y) in zip(names, ring, strict=True):
        left.text(
            x, y, name, ha="center", va="center", bbox={"boxstyle": "round,pad=0.4", "fc": "#eef1f5", "ec": "0.4"}
        )
    left.set(title="directed graph: who pays whom", xlim=(-0.35, 1.35), ylim=(-0.3, 1.3))
    heights = np.linspace(1, 0, 4)
    for u, v in edges:
        right.plot((0, 1), (heights[u], heights[v]), color="0.35", lw=1.4, zorder=1)
    for side, copy, colour in ((0, "out", "#cfe3f5"), (1, "in", "#fbe1c4")):
        for name, height in zip(names, heights, strict=True):
            label(right, side, height, f"{name} ({copy})", colour)
    right.set(title="double cover: every node twice, edges without arrows", xlim=(-0.4, 1.4), ylim=(-0.2, 1.2))
    for axis in (left, right):
        axis.set_axis_off()
    return write_png(figure, FIGURES / "idea-double-cover.png", dpi=110)


if __name__ == "__main__":
    for figure in (filters_figure, certificate_figure, cover_figure):
        print(figure())
