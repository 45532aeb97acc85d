"""Accuracy on the nodes of a homophilic graph whose neighbours are mostly of other classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.data.dataset import Dataset
from asgat.experiments import scores
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, MARKERS, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import Trained, try_train
from asgat.graph import Graph
from asgat.graph.homophily import node_homophily

DATASETS = ["citeseer", "pubmed"]
QUICK = ["citeseer"]
EDGES = [0.1, 0.2, 0.3, 0.4, 0.5]  # upper ends: a bin holds 0.3 < β_v <= 0.4, the first one 0 too
VOTE = "neighbours' vote"
MODELS = [model for model in (*scores.ASGAT, *scores.BASELINES) if model != "asgat-exact"]
CLAIM = "all models except ASGAT perform poorly when β_v is low"


def bins(beta: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The bin of every node, 0 to 4; 5 for nodes with β_v above 0.5."""
    # Shares such as 3/10 are not exact; rounding keeps them in their bin.
    return np.searchsorted(EDGES, beta.round(9), side="left")


def majority_vote(graph: Graph, y: npt.NDArray[np.int64], classes: int) -> npt.NDArray[np.float64]:
    """How often a node's class is the most frequent one among its labelled neighbours; of n that tie, 1/n.

    It is told the true labels of all neighbours, test nodes too: what looking at neighbours alone can give at best,
    if they are taken at their word. Nodes without labelled neighbours score 0.
    """
    row, col = graph.edge_index()
    kept = (row != col) & (y[col] >= 0)
    votes = np.zeros((graph.num_nodes, classes))
    np.add.at(votes, (row[kept], y[col[kept]]), 1.0)
    most = votes.max(axis=1, keepdims=True)
    winners = (votes == most) & (most > 0)
    own = winners[np.arange(len(y)), np.maximum(y, 0)] & (y >= 0)
    return np.asarray(own / np.maximum(winners.sum(axis=1), 1))


def collect(study: Reproduction) -> Result:
    rows: list[dict[str, Any]] = []
    for dataset in study.pick(DATASETS, QUICK):
        data = study.load(dataset)
        place = bins(node_homophily(data.graph, data.y))
        right = majority_vote(data.graph, data.y, data.num_classes)
        per_run = [_accuracy(right, place, split.test) for split in data.splits]
        rows.append(_row(dataset, VOTE, per_run, data, place))
        for model in study.pick_models(MODELS):
            trained = [one for seed in study.seeds if (one := try_train(study, dataset, model, seed)) is not None]
            if len(trained) == len(study.seeds):
                per_run = [accuracies(one, run, place) for one in trained for run in one.runs]
                rows.append(_row(dataset, model, per_run, data, place))
    return {"bins": EDGES, "claim": CLAIM, "rows": rows}


def accuracies(trained: Trained, run: int, place: npt.NDArray[np.int64]) -> list[float]:
    """Accuracy on this run's test nodes, bin by bin; NaN for an empty one."""
    right = trained.predictions(run) == trained.dataset.y
    return _accuracy(right.astype(np.float64), place, trained.split(run).test)


def _accuracy(right: npt.NDArray[np.float64], place: npt.NDArray[np.int64], test: npt.NDArray[np.int64]) -> list[float]:
    chosen = [test[place[test] == i] for i in range(len(EDGES))]
    return [float(right[nodes].mean()) if len(nodes) else float("nan") for nodes in chosen]


def _row(
    dataset: str, model: str, per_run: list[list[float]], data: Dataset, place: npt.NDArray[np.int64]
) -> dict[str, Any]:
    values = np.array(per_run)
    counts = [float(np.mean([(place[s.test] == i).sum() for s in data.splits])) for i in range(len(EDGES))]
    alone = float(np.mean([data.graph.isolated[s.test].sum() for s in data.splits]))
    filled = [values[~np.isnan(values[:, i]), i] for i in range(len(EDGES))]
    return {
        "dataset": dataset,
        "model": model,
        "mean": [float(v.mean()) if len(v) else None for v in filled],
        "std": [float(v.std()) if len(v) else None for v in filled],
        "test_nodes": counts,
        "of_them_without_edges": alone,
        "per_run": per_run,
    }


def tables(result: Result) -> list[Table]:
    shown = []
    for dataset in dict.fromkeys(row["dataset"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["dataset"] == dataset]
        table = Table(title=f"{title(dataset)}: accuracy in percent by β_v, and test nodes", box=SIMPLE_HEAD)
        table.add_column("model", no_wrap=True)
        for edge, count in zip(EDGES, rows[0]["test_nodes"], strict=True):
            table.add_column(f"≤ {edge:.1f}\n({count:.0f})", justify="right")
        for row in rows:
            cells = ["–" if mean is None else f"{100 * mean:.1f}" for mean in row["mean"]]
            table.add_row(row["model"], *cells)
        best = [_best(rows, i) for i in range(len(EDGES))]
        table.caption = f"paper (figure only): {CLAIM}. Best here, bin by bin: {', '.join(best)}"
        shown.append(table)
    return shown


def _best(rows: list[dict[str, Any]], i: int) -> str:
    models = [row for row in rows if row["model"] != VOTE and row["mean"][i] is not None]
    return max(models, key=lambda row: row["mean"][i])["model"] if models else "–"


def draw(result: Result) -> dict[str, Any]:
    datasets = list(dict.fromkeys(row["dataset"] for row in result["rows"]))
    figure = new(6.2 * len(datasets) + 2.0, 4.8)
    axes = figure.subplots(1, len(datasets), squeeze=False, sharey=True)[0]
    models = list(dict.fromkeys(row["model"] for row in result["rows"]))
    ours = [model for model in models if model.startswith("asgat-")]
    others = [model for model in models if model not in (*ours, VOTE)]
    for axis, dataset in zip(axes, datasets, strict=True):
        rows = [row for row in result["rows"] if row["dataset"] == dataset]
        for row in rows:
            model = row["model"]
            heights = [np.nan if mean is None else 100 * mean for mean in row["mean"]]
            place = np.arange(len(EDGES))
            if model == VOTE:
                axis.plot(place, heights, color="black", ls=":", lw=1.8, label=model)
            elif model in ours:
                i = ours.index(model)
                spread = [0.0 if std is None else 100 * std for std in row["std"]]
                axis.errorbar(place + 0.05 * (i - 1), heights, yerr=spread, color=COLOURS[i], marker=MARKERS[i], lw=2.2,
                              ms=7, capsize=2, elinewidth=0.8, label=model, zorder=4)  # fmt: skip
            else:
                i = others.index(model)
                colour, mark = COLOURS[(i + 3) % len(COLOURS)], MARKERS[(i + i // len(MARKERS)) % len(MARKERS)]
                dashes = "--" if i >= len(COLOURS) else "-"
                style = {"color": colour, "marker": mark, "mfc": "white", "ls": dashes}
                axis.plot(place, heights, lw=0.9, ms=5, alpha=0.85, label=model, **style)
        counts = [f"≤ {e:.1f}\n{n:.0f} nodes" for e, n in zip(EDGES, rows[0]["test_nodes"], strict=True)]
        axis.set_xticks(np.arange(len(EDGES)), counts)
        axis.set(
            title=title(dataset),
            xlabel="share β_v of neighbours with the node's own class (bins of 0.1)",
            ylim=(-3, 103),
        )
        plain(axis)
    axes[0].set_ylabel("accuracy on test nodes, in percent")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    words = "Heterophilic nodes of homophilic graphs"
    figure.suptitle(f"{words}\nfilled marks: ASGAT ± standard deviation, open: baselines", fontsize=10)
    return {"heterophilic-nodes": figure}


QUESTION = "Is ASGAT better than others on nodes whose neighbours are of other classes (β_v ≤ 0.5)?"
EXPERIMENT = Experiment("heterophilic-nodes", QUESTION, collect, tables, draw)
