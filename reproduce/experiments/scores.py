"""Test scores over runs and seeds, next to published ones: the paper's two tables, and two of newer data sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduce import paper
from reproduce.experiment import ABOUT, Result, Row, Table, difference, mean_std
from reproduce.plotting import BEST, OURS, PAPER, dataset_title, panels, percent, shared_legend
from reproduce.study import Study

ASGAT = ["asgat-exact", "asgat-cheb", "asgat-arma", "asgat-plus", "asgat-deep"]
BASELINES = ["gcn", "chebnet", "armanet", "gat", "sgc", "sage", "appnp", "geom-gcn", "h2gcn", "mlp", "gpr-gnn", "linkx"]
MODELS = {
    "directed": ["asgat-plus", "asgat-deep"],  # the others cannot use directions
    "heterophilous": ["asgat-plus", "asgat-deep", "gcn", "sage", "gat", "linkx", "mlp"],
}
PRINTED = {"micro": paper.MICRO, "macro": paper.MACRO, "directed": paper.DIRECTED, "heterophilous": paper.HETEROPHILOUS}
SMALL = 1000  # nodes up to which the exact form is trained, as in the paper
LABELS = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "roc_auc": "ROC-AUC"}


def score(study: Study, dataset: str, model: str, metric: str, **changes: Any) -> Row | None:
    """A model's test score over all runs of all seeds; None if it could not be trained with every seed."""
    trained = study.train_all_seeds(dataset, model, **changes)
    if trained is None:
        return None
    results = [one.result for one in trained]
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


def printed_score(table: paper.Table, model: str, dataset: str) -> Row:
    """The paper's mean and standard deviation; None where it has none."""
    mean, std = table.get(model, {}).get(dataset, (None, None))
    return {"paper": mean, "paper_std": std}


def collect(study: Study, name: str, datasets: Sequence[str]) -> Result:
    """Data set → model → score with the paper's, and data set → ``chosen``: the best model on validation."""
    result: Result = {}
    for dataset in datasets:
        rows: dict[str, Any] = {}
        data = study.load(dataset)
        metric = "macro_f1" if name == "macro" else data.metric
        for model in study.models or MODELS.get(name, [*ASGAT, *BASELINES]):
            if model == "asgat-exact" and study.models is None and data.num_nodes > SMALL:
                continue
            found = score(study, dataset, model, metric)
            if found is not None:
                rows[model] = {
                    **found,
                    "metric": metric,
                    **printed_score(PRINTED[name], model, dataset),
                    "paper_doubtful": paper.DOUBTFUL.get((name, dataset, model)),
                    "best_published": best_published(name, dataset),
                }
        if rows:
            result[dataset] = {**rows, "chosen": max(rows, key=lambda model: rows[model]["val_mean"])}
    return result


def best_published(name: str, dataset: str) -> float | None:
    return None if name == "macro" else paper.BEST_PUBLISHED.get(dataset)


def source(name: str) -> str:
    """Whose scores ours are compared with."""
    return "published" if name in MODELS else "paper"


def metric_label(entry: dict[str, Any]) -> str:
    """What the scores of a data set's entry are."""
    return LABELS[next(iter(models_of(entry).values()))["metric"]]


def models_of(entry: dict[str, Any]) -> dict[str, Row]:
    """The models of a data set's entry."""
    return {model: row for model, row in entry.items() if model != "chosen"}


def entries_of(result: Result) -> dict[str, Any]:
    """The entries of a result's data sets."""
    return {dataset: entry for dataset, entry in result.items() if dataset not in ABOUT}


def tables(result: Result) -> list[Table]:
    """One table per data set: ours, the paper's and the difference."""
    name, shown = result["about"]["experiment"], []
    for dataset, entry in entries_of(result).items():
        best = best_published(name, dataset)
        above = f"; best published {100 * best:.1f}" if best else ""
        doubtful = any(row["paper_doubtful"] for row in models_of(entry).values())
        rows = [
            (
                f"{model} ←" if model == entry["chosen"] else model,
                mean_std(row["mean"], row["std"]),
                mean_std(row["paper"], row["paper_std"]) + ("?" if row["paper_doubtful"] else ""),
                difference(row["mean"], row["paper"]),
                mean_std(row["val_mean"]),
            )
            for model, row in models_of(entry).items()
        ]
        rows += [
            (model, "–", mean_std(*scores[dataset]), "–", "–")
            for model, scores in PRINTED[name].items()
            if dataset in scores and name in MODELS and model not in entry
        ]
        title = f"{dataset_title(dataset)}: {metric_label(entry)} in percent{above}"
        caption = "← highest validation score" + ("; ? looks misprinted" if doubtful else "")
        shown.append(Table(title, ("model", "ours", source(name), "difference", "validation"), rows, caption))
    return shown


def draw(result: Result) -> dict[str, Any]:
    """A panel per data set: our mean and spread of every model, the paper's score, and the best published score."""
    name, entries = result["about"]["experiment"], entries_of(result)
    columns = min(4, len(entries))
    lines = -(-len(entries) // columns)
    most = max(len(models_of(entry)) for entry in entries.values())
    figure, axes = panels(max(5.4, 3.3 * columns + 0.4), lines * (1.1 + 0.21 * most) + 0.8, lines, columns)
    for axis in axes.flat[len(entries) :]:
        axis.set_visible(False)
    for axis, (dataset, entry) in zip(axes.flat, entries.items(), strict=False):
        rows = models_of(entry)
        heights = np.arange(len(rows))
        means, spreads, theirs = percent(rows.values(), "mean", "std", "paper")
        axis.errorbar(means, heights, xerr=spreads, fmt="o", color=OURS, ms=5, lw=1.2, capsize=2, label="ours ± std")
        axis.plot(theirs, heights, "D", mfc="none", color=PAPER, ms=6, mew=1.4, label=source(name))
        best = best_published(name, dataset)
        if best:
            axis.axvline(100 * best, color=BEST, ls="--", lw=1.2, label="best published")
        labels = axis.set_yticks(heights, list(rows), fontsize=8)
        labels[list(rows).index(entry["chosen"])].label1.set_fontweight("bold")
        axis.margins(x=0.07)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_title(dataset_title(dataset), fontsize=10)
        axis.set_xlabel(f"{metric_label(entry)} on test nodes, in percent", fontsize=8)
        axis.tick_params(axis="x", labelsize=8)
    shared_legend(figure, axes, 3, fontsize=9)
    seeds = len(result["about"]["seeds"])
    what = name if name in MODELS else LABELS[f"{name}_f1"]
    title = f"{what}: mean ± standard deviation over all runs, {seeds} seed{'s' if seeds > 1 else ''}"
    figure.suptitle(f"{title}\nbold: highest validation score", fontsize=10)
    return {name: figure}
