"""Accuracy on the nodes of a homophilic graph whose neighbours are mostly of other classes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from asgat.data.dataset import Dataset
from asgat.graph.graph import Floats, Graph, Ints
from asgat.graph.homophily import node_homophily
from reproduce.experiment import EXPERIMENTS, Result, Row, Table, datasets_of, mean_std, rows_of
from reproduce.experiments import scores
from reproduce.plotting import COLOURS, MARKERS, dataset_title, panels
from reproduce.study import Study

EDGES: list[float] = EXPERIMENTS["heterophilic-nodes"]["bins"]  # upper ends
VOTE = "neighbours' vote"
MODELS = [model for model in (*scores.ASGAT, *scores.BASELINES) if model != "asgat-exact"]


def bins(beta: Floats) -> Ints:
    """The bin of every node, 0 to 4; 5 for nodes with β_v above 0.5."""
    # Shares such as 3/10 are not exact; rounding keeps them in their bin.
    return np.searchsorted(EDGES, beta.round(9), side="left")


def majority_vote(graph: Graph, y: Ints, classes: int) -> Floats:
    """How often a node's class is the most frequent one among its labelled neighbours; 1/n if n classes tie.

    It uses the true labels of all neighbours, including test nodes: the best that a vote of the neighbours can achieve.
    Nodes without labelled neighbours score 0.
    """
    row, col = graph.edge_index()
    kept = (row != col) & (y[col] >= 0)
    votes = np.zeros((graph.num_nodes, classes))
    np.add.at(votes, (row[kept], y[col[kept]]), 1.0)
    most = votes.max(axis=1, keepdims=True)
    winners = (votes == most) & (most > 0)
    own = winners[np.arange(len(y)), np.maximum(y, 0)] & (y >= 0)
    return np.asarray(own / np.maximum(winners.sum(axis=1), 1))


def rows(study: Study, dataset: str) -> Iterator[Row]:
    data = study.load(dataset)
    place = bins(node_homophily(data.graph, data.y))
    vote = majority_vote(data.graph, data.y, data.num_classes)
    yield _row(VOTE, [_accuracy(vote, place, split.test) for split in data.splits], data, place)
    for model in study.models or MODELS:
        trained = study.train_all_seeds(dataset, model)
        if trained is not None:
            per_run = [
                _accuracy((one.predictions(run) == data.y).astype(np.float64), place, one.split(run).test)
                for one in trained
                for run in one.runs
            ]
            yield _row(model, per_run, data, place)


def _accuracy(right: Floats, place: Ints, test: Ints) -> list[float]:
    """Accuracy on test nodes, bin by bin; NaN for an empty bin."""
    chosen = [test[place[test] == i] for i in range(len(EDGES))]
    return [float(right[nodes].mean()) if len(nodes) else float("nan") for nodes in chosen]


def _row(model: str, per_run: list[list[float]], data: Dataset, place: Ints) -> Row:
    values = np.ma.masked_invalid(per_run)  # empty bins; a mean over no run is None
    return {
        "dataset": data.name,
        "model": model,
        "mean": values.mean(axis=0).tolist(),
        "std": values.std(axis=0).tolist(),
        "test_nodes": [float(np.mean([(place[s.test] == i).sum() for s in data.splits])) for i in range(len(EDGES))],
        "of_them_without_edges": float(np.mean([data.graph.isolated[s.test].sum() for s in data.splits])),
        "per_run": per_run,
    }


def tables(result: Result) -> list[Table]:
    shown = []
    for dataset in datasets_of(result):
        rows = rows_of(result, dataset=dataset)
        counts = zip(EDGES, rows[0]["test_nodes"], strict=True)
        headings = ["model", *(f"≤ {edge:.1f}\n({count:.0f})" for edge, count in counts)]
        cells = [(row["model"], *map(mean_std, row["mean"])) for row in rows]
        best = ", ".join(_best(rows, i) for i in range(len(EDGES)))
        title = f"{dataset_title(dataset)}: accuracy in percent by β_v, and test nodes"
        caption = f"paper (figure only): {result['claim']}. Best here, by bin: {best}"
        shown.append(Table(title, headings, cells, caption))
    return shown


def _best(rows: list[Row], i: int) -> str:
    models = [row for row in rows if row["model"] != VOTE and row["mean"][i] is not None]
    return max(models, key=lambda row: row["mean"][i])["model"] if models else "–"


def draw(result: Result) -> dict[str, Any]:
    datasets = datasets_of(result)
    figure, (axes,) = panels(6.2 * len(datasets) + 2.0, 4.8, 1, len(datasets), sharey=True)
    models = list(dict.fromkeys(row["model"] for row in result["rows"]))
    ours = [model for model in models if model.startswith("asgat-")]
    others = [model for model in models if model not in (*ours, VOTE)]
    place = np.arange(len(EDGES))
    for axis, dataset in zip(axes, datasets, strict=True):
        rows = rows_of(result, dataset=dataset)
        for row in rows:
            model = row["model"]
            heights = 100 * np.array(row["mean"], dtype=float)  # None becomes NaN
            if model == VOTE:
                axis.plot(place, heights, color="black", ls=":", lw=1.8, label=model)
            elif model in ours:
                i = ours.index(model)
                spread = 100 * np.nan_to_num(np.array(row["std"], dtype=float))
                axis.errorbar(place + 0.05 * (i - 1), heights, yerr=spread, color=COLOURS[i], marker=MARKERS[i], lw=2.2,
                              ms=7, capsize=2, elinewidth=0.8, label=model, zorder=4)  # fmt: skip
            else:
                i = others.index(model)
                colour, mark = COLOURS[(i + 3) % len(COLOURS)], MARKERS[(i + i // len(MARKERS)) % len(MARKERS)]
                style = {"color": colour, "marker": mark, "mfc": "white", "ls": "--" if i >= len(COLOURS) else "-"}
                axis.plot(place, heights, lw=0.9, ms=5, alpha=0.85, label=model, **style)
        counts = [f"≤ {e:.1f}\n{n:.0f} nodes" for e, n in zip(EDGES, rows[0]["test_nodes"], strict=True)]
        axis.set_xticks(place, counts)
        xlabel = "share β_v of neighbours with the node's own class (bins of 0.1)"
        axis.set(title=dataset_title(dataset), xlabel=xlabel, ylim=(-3, 103))
    axes[0].set_ylabel("accuracy on test nodes, in percent")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    title = "Heterophilic nodes of homophilic graphs"
    figure.suptitle(f"{title}\nfilled marks: ASGAT ± standard deviation, open: baselines", fontsize=10)
    return {"heterophilic-nodes": figure}
