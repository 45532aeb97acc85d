"""Test scores over runs and seeds, beside the paper's; shared by the tables of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.experiments import paper
from asgat.experiments.experiment import ABOUT, Result
from asgat.experiments.plotting import BEST, OURS, PAPER, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import try_train

ASGAT = ["asgat-exact", "asgat-cheb", "asgat-arma", "asgat-plus"]
BASELINES = ["gcn", "chebnet", "armanet", "gat", "sgc", "sage", "appnp", "geom-gcn", "h2gcn", "mlp", "gpr-gnn", "linkx"]
WEBKB = ["wisconsin", "cornell", "texas"]
SMALL = 1000  # nodes up to which the exact form is trained, as in the paper


def score(study: Reproduction, dataset: str, model: str, metric: str, **changes: Any) -> dict[str, Any] | None:
    """A model's test score on a data set: mean and standard deviation over all runs of all seeds.

    Returns None where it could not be trained with every seed.
    """
    trained = [try_train(study, dataset, model, seed, **changes) for seed in study.seeds]
    results = [one.result for one in trained if one is not None]
    if len(results) < len(study.seeds):
        return None
    values = [value for result in results for value in result[metric]["per_run"]]
    validation = [row["val_score"] for result in results for row in result["rows"]]
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values)),
        "per_run": values,
        "per_seed": {str(seed): r[metric]["mean"] for seed, r in zip(study.seeds, results, strict=True)},
        "val_mean": float(np.mean(validation)),
        "restarts": sum(result["restarts"] for result in results),
    }


def collect(study: Reproduction, name: str, metric: str, printed: paper.Table, quick: Sequence[str]) -> Result:
    """Data set → model → score, the paper's beside it, and data set → ``chosen``: the best on validation."""
    result: Result = {}
    for dataset in study.pick(paper.DATASETS, quick):
        rows: dict[str, Any] = {}
        for model in study.pick_models([*ASGAT, *BASELINES]):
            if model == "asgat-exact" and study.models is None and study.load(dataset).num_nodes > SMALL:
                continue
            found = score(study, dataset, model, metric)
            if found is None:
                continue
            theirs = printed.get(model, {}).get(dataset)
            rows[model] = {
                **found,
                "paper": theirs.mean if theirs else None,
                "paper_std": theirs.std if theirs else None,
                "paper_doubtful": paper.DOUBTFUL.get((name, dataset, model)),
                "best_published": paper.BEST_PUBLISHED.get(dataset) if metric == "micro_f1" else None,
            }
        if rows:
            chosen = max(rows, key=lambda model: rows[model]["val_mean"])
            result[dataset] = {**rows, "chosen": chosen}
    return result


def models_of(entry: dict[str, Any]) -> dict[str, Any]:
    """The models of a data set's entry."""
    return {name: row for name, row in entry.items() if name != "chosen"}


def datasets_of(result: Result) -> dict[str, Any]:
    return {name: entry for name, entry in result.items() if name not in ABOUT}


def percent(row: dict[str, Any] | None) -> str:
    return "–" if row is None else f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}"


def points(ours: float | None, theirs: float | None) -> str:
    """The difference in points, with its sign."""
    return "–" if ours is None or theirs is None else f"{100 * (ours - theirs):+.1f}"


def tables(result: Result, words: str) -> list[Table]:
    """One table per data set: ours, the paper's and the difference."""
    shown = []
    for dataset, entry in datasets_of(result).items():
        best = paper.BEST_PUBLISHED.get(dataset) if words == "micro-F1" else None
        above = f"; best published {100 * best:.1f}" if best else ""
        table = Table(title=f"{title(dataset)}: {words} in percent{above}", box=SIMPLE_HEAD)
        for heading in ("model", "ours", "paper", "difference", "validation"):
            table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
        for model, row in models_of(entry).items():
            theirs = "–" if row["paper"] is None else f"{100 * row['paper']:.1f}"
            if row["paper"] is not None and row["paper_std"] is not None:
                theirs += f" ± {100 * row['paper_std']:.1f}"
            name = f"{model} ←" if model == entry["chosen"] else model
            doubt = "?" if row["paper_doubtful"] else ""
            difference = points(row["mean"], row["paper"])
            table.add_row(name, percent(row), theirs + doubt, difference, f"{100 * row['val_mean']:.1f}")
        table.caption = "← highest validation score" + ("; ? looks misprinted" if _doubtful(entry) else "")
        shown.append(table)
    return shown


def _doubtful(entry: dict[str, Any]) -> bool:
    return any(row["paper_doubtful"] for row in models_of(entry).values())


def draw(result: Result, words: str) -> Any:
    """A panel per data set: our mean and spread of every model, the paper's mark, the best published score."""
    entries = datasets_of(result)
    columns = min(4, len(entries))
    lines = -(-len(entries) // columns)
    most = max(len(models_of(entry)) for entry in entries.values())
    figure = new(max(5.4, 3.3 * columns + 0.4), lines * (1.1 + 0.21 * most) + 0.8)
    axes = figure.subplots(lines, columns, squeeze=False)
    for axis in axes.flat[len(entries) :]:
        axis.set_visible(False)
    for axis, (dataset, entry) in zip(axes.flat, entries.items(), strict=False):
        rows = models_of(entry)
        heights = np.arange(len(rows))
        means, spreads = ([100 * row[key] for row in rows.values()] for key in ("mean", "std"))
        theirs = [np.nan if row["paper"] is None else 100 * row["paper"] for row in rows.values()]
        axis.errorbar(means, heights, xerr=spreads, fmt="o", color=OURS, ms=5, lw=1.2, capsize=2, label="ours ± std")
        axis.plot(theirs, heights, "D", mfc="none", color=PAPER, ms=6, mew=1.4, label="paper")
        best = paper.BEST_PUBLISHED.get(dataset) if words == "micro-F1" else None
        if best:
            axis.axvline(100 * best, color=BEST, ls="--", lw=1.2, label="best published")
        labels = axis.set_yticks(heights, list(rows), fontsize=8)
        labels[list(rows).index(entry["chosen"])].label1.set_fontweight("bold")
        axis.margins(x=0.07)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_title(title(dataset), fontsize=10)
        axis.tick_params(axis="x", labelsize=8)
        plain(axis)
    for axis in axes[-1]:
        axis.set_xlabel(f"{words} on test nodes, in percent", fontsize=8)
    handles, labels = max((axis.get_legend_handles_labels() for axis in axes.flat), key=lambda pair: len(pair[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    seeds = len(result["about"]["seeds"])
    words = f"{words}: mean ± standard deviation over all runs, {seeds} seed{'s' if seeds > 1 else ''}"
    figure.suptitle(f"{words}\nbold: highest validation score", fontsize=10)
    return figure
