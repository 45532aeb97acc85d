"""Figure 1: the nodes that a low-pass and a high-pass head attend to, around one node."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from asgat.data.dataset import Dataset
from asgat.errors import AsgatError
from asgat.explain.attention_rows import pair_hops
from asgat.explain.responses import BLOCK, correlation, filter_response
from asgat.graph.graph import Floats, Graph
from asgat.graph.hops import hop_distances
from asgat.nn import ASGAT
from asgat.nn.attention import attend
from asgat.spectral import spectral_density
from asgat.spectral.top_k import row_blocks
from asgat.training.inputs import graph_for
from reproduce.experiment import Result, Row, Table, mean_std
from reproduce.plotting import COLOURS, MARKERS, dataset_title, panels
from reproduce.study import Study

HOPS = 3
SIZE = 30  # the number of nodes to draw, approximately
FREQUENCY = np.linspace(0.0, 2.0, 201)
NAMES = ["itself", "1 hop", "2 hops", "3 hops", "beyond"]


def collect(study: Study, name: str, datasets: Sequence[str]) -> Result:
    """The first layer of the model with the best validation score of the first seed."""
    trained = study.train(datasets[0], "asgat-cheb")
    if trained is None:
        return {}
    best = max(trained.result["rows"], key=lambda row: row["val_score"])["run"]
    conv = cast(ASGAT, trained.load(best, study.device)).convs[0]
    response = filter_response(conv.filter, FREQUENCY)
    density = spectral_density(graph_for(trained.dataset, trained.config), FREQUENCY)
    slopes = [correlation(values, FREQUENCY, density) for values in response.T]
    with torch.no_grad():
        attention = attend(trained.inputs(study.device)[1], conv.filter, conv.k, conv.include_unreachable)
    index, weight = attention.index.cpu().numpy(), attention.weight.cpu().numpy()
    graph, centre = trained.dataset.graph, central_node(trained.dataset)
    distance = hop_distances(graph, np.array([centre]))[0]
    ego = np.flatnonzero((distance >= 0) & (distance <= HOPS))
    rows = []
    for kind, head in (("low-pass", int(np.argmin(slopes))), ("high-pass", int(np.argmax(slopes)))):
        own = dict(zip(index[head, centre].tolist(), weight[head, centre].tolist(), strict=True))
        inside = [own.get(node, 0.0) for node in ego.tolist()]
        rows.append(
            {
                "kind": kind,
                "head": head,
                "slope": slopes[head],
                "response": response[:, head].tolist(),
                "attention": inside,
                "outside": max(0.0, 1.0 - sum(inside)),  # rounding may make it negative
                "by_hop": by_hop(graph, index[head], weight[head]),
            }
        )
    one, other = graph.adjacency[ego][:, ego].nonzero()
    return {
        "dataset": datasets[0],
        "run": best,
        "k": conv.k,
        "centre": centre,
        "nodes": ego.tolist(),
        "hop": distance[ego].tolist(),
        "label": trained.dataset.y[ego].tolist(),
        "edges": np.stack([one, other], axis=1)[one < other].tolist(),
        "frequency": FREQUENCY.tolist(),
        "slopes": slopes,
        "rows": rows,
    }


def central_node(dataset: Dataset) -> int:
    """The first node whose three-hop network is closest to 30 nodes, with at least three nodes at every hop."""
    misses = np.full(dataset.num_nodes, np.inf)
    for rows in row_blocks(dataset.num_nodes, dataset.num_nodes, BLOCK):
        distance = hop_distances(dataset.graph, np.arange(rows.start, rows.stop))
        count = np.stack([(distance == hop).sum(axis=1) for hop in range(1, HOPS + 1)])
        misses[rows] = np.where((count >= 3).all(axis=0), np.abs(1 + count.sum(axis=0) - SIZE), np.inf)
    if not np.isfinite(misses).any():
        raise AsgatError(f"{dataset.name} has no node with three nodes at each of three hops; choose another data set.")
    return int(misses.argmin())


def by_hop(graph: Graph, index: npt.NDArray[Any], weight: npt.NDArray[Any]) -> list[float]:
    """One head's attention by distance, the mean over all nodes: to itself, at 1, 2 and 3 hops, and beyond."""
    hops = pair_hops(graph, np.arange(graph.num_nodes), index[None].astype(np.int64))[0]
    hops = np.where((hops < 0) | (hops > HOPS), HOPS + 1, hops)
    total = np.bincount(hops.ravel(), weights=weight.ravel(), minlength=HOPS + 2)
    return [float(share) for share in total / max(graph.num_nodes, 1)]


def layout(hop: list[int], edges: list[list[int]]) -> Floats:
    """Positions [n, 2] on rings, one per hop; on each ring nodes are ordered by the angle of their inner neighbours."""
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
    title = f"Attention by distance, mean over all nodes of {dataset_title(result['dataset'])}, in percent"
    rows = [
        (f"{row['head'] + 1}: {row['kind']}", f"{row['slope']:+.2f}", *map(mean_std, row["by_hop"]))
        for row in result["rows"]
    ]
    return [Table(title, ("head", "correlation with λ", *NAMES), rows, f"paper (Figure 1): {result['claim']}")]


def draw(result: Result) -> dict[str, Any]:
    figure, (axes,) = panels(14.0, 5.0, 1, 4, "y", width_ratios=[1.0, 1.35, 1.35, 0.9])
    axes[0].grid(axis="x", color="0.92")
    colours = {"low-pass": COLOURS[0], "high-pass": COLOURS[3]}
    for row in result["rows"]:
        label = f"head {row['head'] + 1}: {row['kind']}"
        axes[0].plot(result["frequency"], row["response"], color=colours[row["kind"]], lw=1.8, label=label)
    axes[0].set(xlabel="frequency λ", ylabel="learned response g(λ)", xlim=(0, 2), title="two heads of layer 1")
    axes[0].legend(frameon=False, fontsize=8)
    place = layout(result["hop"], result["edges"])
    largest = max(max(row["attention"]) for row in result["rows"])
    for axis, row in zip(axes[1:3], result["rows"], strict=True):
        _network(axis, result, row, place, largest)
    figure.colorbar(axes[1].collections[-1], ax=axes[2], label="attention of the central node", shrink=0.75)
    for i, row in enumerate(result["rows"]):
        axes[3].bar(np.arange(5) + 0.38 * (i - 0.5), [100 * share for share in row["by_hop"]], 0.36,
                    color=colours[row["kind"]], hatch="//" * i, edgecolor="white", label=row["kind"])  # fmt: skip
    axes[3].set_xticks(np.arange(5), NAMES, rotation=30)
    axes[3].set(ylabel="attention, in percent", title="mean over all nodes")
    axes[3].legend(frameon=False, fontsize=8)
    network = f"{dataset_title(result['dataset'])}, node {result['centre']} and its three-hop network"
    figure.suptitle(f"{network}: shapes are classes, rings are hops")
    return {"illustration": figure}


def _network(axis: Any, result: Result, row: Row, place: Floats, largest: float) -> None:
    from matplotlib.patches import Circle

    for ring in range(1, HOPS + 1):
        axis.add_patch(Circle((0, 0), ring, fill=False, color="0.9", lw=0.8, zorder=0))
    for u, v in result["edges"]:
        axis.plot(*place[[u, v]].T, color="0.7", lw=0.8, zorder=1)
    attention, labels = np.array(row["attention"]), np.array(result["label"])
    for label in np.unique(labels):
        mark = MARKERS[label % len(MARKERS)]
        other = np.flatnonzero((labels == label) & (attention <= 0))
        axis.scatter(*place[other].T, s=60, marker=mark, color="white", edgecolor="0.55", zorder=2)
        attended = np.flatnonzero((labels == label) & (attention > 0))
        size = 60 + 260 * attention[attended] / max(largest, 1e-9)
        axis.scatter(*place[attended].T, c=attention[attended], s=size, marker=mark, cmap="viridis_r", vmin=0.0,
                     vmax=largest, edgecolor="black", linewidth=0.8, zorder=3)  # fmt: skip
    centre = place[result["hop"].index(0)]
    axis.annotate("v", centre, (7, 7), textcoords="offset points", fontsize=11, weight="bold", zorder=4)
    axis.set(aspect="equal", xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), xticks=[], yticks=[])
    axis.set_title(f"head {row['head'] + 1}, {row['kind']}; {100 * row['outside']:.0f} % outside", fontsize=10)
    axis.spines[:].set_visible(False)
