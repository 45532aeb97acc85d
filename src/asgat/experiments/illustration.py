"""Figure 1: what a low-pass and a high-pass head attend to, around one node."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.data.dataset import Dataset
from asgat.errors import AsgatError
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, MARKERS, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import train
from asgat.explain.responses import filter_response
from asgat.graph import Graph
from asgat.graph.hops import hop_distances
from asgat.nn import ASGAT
from asgat.nn.attention import attend
from asgat.spectral import spectral_density
from asgat.training.inputs import graph_for

DATASETS = ["citeseer"]
HOPS = 3
SIZE = 30  # nodes of the ego network that is drawn, as nearly as possible
CLAIM = "the low-pass filter attends to local neighbours, the high-pass one skips the first hop for the second"
FREQUENCY = np.linspace(0.0, 2.0, 201)


def collect(study: Reproduction) -> Result:
    """The first layer of the model with the best validation score of the first seed."""
    dataset = study.pick(DATASETS, DATASETS)[0]
    trained = train(study, dataset, "asgat-cheb", study.seeds[0])
    best = max(trained.result["rows"], key=lambda row: row["val_score"])["run"]
    net = cast(ASGAT, trained.load(best, study.device))
    graph = graph_for(trained.dataset, trained.config)
    conv = net.convs[0]
    response = filter_response(conv.filter, FREQUENCY)
    density = spectral_density(graph, FREQUENCY)
    slopes = [slope(response[:, head], density) for head in range(conv.heads)]
    low, high = int(np.argmin(slopes)), int(np.argmax(slopes))
    with torch.no_grad():
        attention = attend(trained.inputs(study.device)[1], conv.filter, conv.k, conv.include_unreachable)
    index, weight = attention.index.cpu().numpy(), attention.weight.cpu().numpy()
    centre = central_node(trained.dataset)
    distance = hop_distances(trained.dataset.graph, np.array([centre]))[0]
    ego = np.flatnonzero((distance >= 0) & (distance <= HOPS))
    heads = []
    for kind, head in (("low-pass", low), ("high-pass", high)):
        own = dict(zip(index[head, centre].tolist(), weight[head, centre].tolist(), strict=True))
        heads.append(
            {
                "kind": kind,
                "head": head,
                "slope": slopes[head],
                "response": response[:, head].tolist(),
                "attention": [own.get(node, 0.0) for node in ego.tolist()],
                "outside": 1.0 - sum(own.get(node, 0.0) for node in ego.tolist()),
                "by_hop": by_hop(trained.dataset.graph, index[head], weight[head]),
            }
        )
    inside = {node: i for i, node in enumerate(ego.tolist())}
    edges = [
        (inside[u], inside[v]) for u, v in trained.dataset.graph.edge_index().T.tolist() if u in inside and v in inside
    ]
    return {
        "dataset": dataset,
        "run": best,
        "k": conv.k,
        "claim": CLAIM,
        "centre": centre,
        "nodes": ego.tolist(),
        "hop": distance[ego].tolist(),
        "label": trained.dataset.y[ego].tolist(),
        "edges": [[u, v] for u, v in edges if u < v],
        "frequency": FREQUENCY.tolist(),
        "slopes": slopes,
        "rows": heads,
    }


def slope(response: npt.NDArray[Any], density: npt.NDArray[Any]) -> float:
    """Correlation of a response with λ over the graph's spectrum: -1 is low-pass, 1 high-pass, 0 without shape."""
    weight = density / density.sum()
    x, g = FREQUENCY - weight @ FREQUENCY, response - weight @ response
    spread = float(np.sqrt((weight @ x**2) * (weight @ g**2)))
    return float(weight @ (x * g) / spread) if spread > 1e-12 else 0.0


def central_node(dataset: Dataset) -> int:
    """The node whose three-hop network is nearest to 30 nodes, with three nodes at least at every hop.

    Attention has no say in it; of equal ones the first.
    """
    nodes = np.arange(dataset.num_nodes)
    best: tuple[int, int] | None = None
    for start in range(0, len(nodes), 500):
        distance = hop_distances(dataset.graph, nodes[start : start + 500])
        count = np.stack([(distance == hop).sum(axis=1) for hop in range(1, HOPS + 1)])
        misses = np.where((count >= 3).all(axis=0), np.abs(1 + count.sum(axis=0) - SIZE), dataset.num_nodes + 1)
        place = int(np.argmin(misses))
        if misses[place] <= dataset.num_nodes and (best is None or misses[place] < best[0]):
            best = int(misses[place]), start + place
    if best is None:
        raise AsgatError(f"{dataset.name} has no node with three nodes at each of three hops; choose another data set.")
    return best[1]


def by_hop(graph: Graph, index: npt.NDArray[Any], weight: npt.NDArray[Any]) -> list[float]:
    """One head's attention by distance, the mean over all nodes: to oneself, at 1, 2 and 3 hops, and beyond."""
    total = np.zeros(HOPS + 2)
    for start in range(0, graph.num_nodes, 500):
        rows = np.arange(start, min(start + 500, graph.num_nodes))
        hops = np.take_along_axis(hop_distances(graph, rows), index[rows].astype(np.int64), axis=1)
        hops = np.where((hops < 0) | (hops > HOPS), HOPS + 1, hops)
        total += np.bincount(hops.ravel(), weights=weight[rows].ravel(), minlength=HOPS + 2)
    return [float(share) for share in total / max(graph.num_nodes, 1)]


def layout(hop: list[int], edges: list[list[int]]) -> npt.NDArray[np.float64]:
    """Places [n, 2] on rings, one per hop; on each ring nodes are ordered by where their inner neighbours lie."""
    place = np.zeros((len(hop), 2))
    angle = np.zeros(len(hop))
    for ring in range(1, max(hop, default=0) + 1):
        nodes = [node for node, h in enumerate(hop) if h == ring]
        inner = {
            node: [u + v - node for u, v in edges if node in (u, v) and hop[u + v - node] == ring - 1] for node in nodes
        }
        nodes.sort(key=lambda node: (np.mean([angle[i] for i in inner[node]]) if inner[node] else 0.0, node))
        for i, node in enumerate(nodes):
            angle[node] = 2 * np.pi * (i + 0.5) / len(nodes)
            place[node] = ring * np.cos(angle[node]), ring * np.sin(angle[node])
    return place


def tables(result: Result) -> list[Table]:
    table = Table(
        title=f"Attention by distance, mean over all nodes of {title(result['dataset'])}, in percent", box=SIMPLE_HEAD
    )
    for heading in ("head", "correlation with λ", "itself", "1 hop", "2 hops", "3 hops", "beyond"):
        table.add_column(heading, justify="left" if heading == "head" else "right")
    for row in result["rows"]:
        shares = [f"{100 * share:.1f}" for share in row["by_hop"]]
        table.add_row(f"{row['head'] + 1}: {row['kind']}", f"{row['slope']:+.2f}", *shares)
    table.caption = f"paper (Figure 1): {CLAIM}"
    return [table]


def draw(result: Result) -> dict[str, Any]:
    figure = new(14.0, 5.0)
    axes = figure.subplots(1, 4, width_ratios=[1.0, 1.35, 1.35, 0.9])
    colours = {"low-pass": COLOURS[0], "high-pass": COLOURS[3]}
    for row in result["rows"]:
        label = f"head {row['head'] + 1}: {row['kind']}"
        axes[0].plot(result["frequency"], row["response"], color=colours[row["kind"]], lw=1.8, label=label)
    axes[0].set(xlabel="frequency λ", ylabel="learned response g(λ)", xlim=(0, 2), title="two heads of layer 1")
    axes[0].legend(frameon=False, fontsize=8)
    plain(axes[0])
    place = layout(result["hop"], result["edges"])
    largest = max(max(row["attention"]) for row in result["rows"])
    for axis, row in zip(axes[1:3], result["rows"], strict=True):
        _network(axis, result, row, place, largest)
    figure.colorbar(axes[1].collections[-1], ax=axes[2], label="attention of the central node", shrink=0.75)
    names = ["itself", "1 hop", "2 hops", "3 hops", "beyond"]
    for i, row in enumerate(result["rows"]):
        axes[3].bar(np.arange(5) + 0.38 * (i - 0.5), [100 * share for share in row["by_hop"]], 0.36,
                    color=colours[row["kind"]], hatch="//" * i, edgecolor="white", label=row["kind"])  # fmt: skip
    axes[3].set_xticks(np.arange(5), names, rotation=30)
    axes[3].set(ylabel="attention, in percent", title="mean over all nodes")
    axes[3].legend(frameon=False, fontsize=8)
    plain(axes[3], "y")
    figure.suptitle(
        f"{title(result['dataset'])}, node {result['centre']} and its three-hop network: "
        "shapes are classes, rings are hops"
    )
    return {"illustration": figure}


def _network(axis: Any, result: Result, row: dict[str, Any], place: npt.NDArray[np.float64], largest: float) -> None:
    for ring in range(1, HOPS + 1):
        axis.add_patch(_circle(ring))
    for u, v in result["edges"]:
        axis.plot(*place[[u, v]].T, color="0.7", lw=0.8, zorder=1)
    attention, labels = np.array(row["attention"]), np.array(result["label"])
    for label in np.unique(labels):
        nodes = np.flatnonzero(labels == label)
        quiet = nodes[attention[nodes] <= 0]
        mark = MARKERS[label % len(MARKERS)]
        axis.scatter(*place[quiet].T, s=60, marker=mark, color="white", edgecolor="0.55", zorder=2)
    for label in np.unique(labels):
        heard = np.flatnonzero((labels == label) & (attention > 0))
        mark = MARKERS[label % len(MARKERS)]
        size = 60 + 260 * attention[heard] / max(largest, 1e-9)
        axis.scatter(*place[heard].T, c=attention[heard], s=size, marker=mark, cmap="viridis_r", vmin=0.0, vmax=largest,
                     edgecolor="black", linewidth=0.8, zorder=3)  # fmt: skip
    axis.annotate(
        "v", place[result["hop"].index(0)], (7, 7), textcoords="offset points", fontsize=11, weight="bold", zorder=4
    )
    axis.set(aspect="equal", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), xticks=[], yticks=[])
    outside = 100 * max(row["outside"], 0.0)
    axis.set_title(f"head {row['head'] + 1}, {row['kind']}; {outside:.0f} % outside", fontsize=10)
    axis.spines[:].set_visible(False)


def _circle(radius: float) -> Any:
    from matplotlib.patches import Circle

    return Circle((0, 0), radius, fill=False, color="0.9", lw=0.8, zorder=0)


QUESTION = "Figure 1: does a low-pass head attend to neighbours, and a high-pass head past them?"
EXPERIMENT = Experiment("illustration", QUESTION, collect, tables, draw)
