"""Micro-F1 against k, the number of nodes a head attends to."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, MARKERS, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import config_of, try_train

DATASETS = ["cora", "chameleon"]
KS = list(range(1, 21))
QUICK_KS = [1, 3, 6, 12, 20]
CLAIM = "Cora rises with k and is steady for 6 < k < 20; Chameleon is more sensitive and fluctuates for k > 1"


def collect(study: Reproduction) -> Result:
    """Trains with every k, on all runs of the first seed."""
    rows = []
    for dataset in study.pick(DATASETS, DATASETS):
        own = getattr(config_of(dataset, "asgat-cheb"), "k", None)
        for k in QUICK_KS if study.quick else KS:
            trained = try_train(study, dataset, "asgat-cheb", study.seeds[0], k=k)
            if trained is not None:
                score = trained.result["micro_f1"]
                validation = trained.result["val_micro_f1"]
                rows.append({"dataset": dataset, "k": k, **score, "val_mean": validation, "recipe": k == own})
    return {"model": "asgat-cheb", "claim": CLAIM, "rows": rows}


def of(result: Result, dataset: str) -> list[dict[str, Any]]:
    return [row for row in result["rows"] if row["dataset"] == dataset]


def datasets(result: Result) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in result["rows"]))


def spread(rows: list[dict[str, Any]], above: int) -> float:
    """Highest less lowest mean over all k above a value."""
    means = [row["mean"] for row in rows if row["k"] > above]
    return max(means) - min(means) if means else float("nan")


def tables(result: Result) -> list[Table]:
    names = datasets(result)
    table = Table(title="Micro-F1 in percent against k, asgat-cheb", box=SIMPLE_HEAD)
    table.add_column("k", justify="right")
    for name in names:
        table.add_column(title(name), justify="right")
    for k in dict.fromkeys(row["k"] for row in result["rows"]):
        cells = []
        for name in names:
            row = next((row for row in of(result, name) if row["k"] == k), None)
            mark = " ←" if row and row["recipe"] else "  "
            cells.append(f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}{mark}" if row else "–")
        table.add_row(str(k), *cells)
    steady = [f"{title(name)} {100 * spread(of(result, name), 6):.1f} points" for name in names]
    table.caption = (
        f"← the recipe's k. Paper (figure only): {CLAIM}. Range of means for k > 6 here: {', '.join(steady)}"
    )
    return [table]


def draw(result: Result) -> dict[str, Any]:
    figure = new(7.2, 4.4)
    axis = figure.subplots()
    for i, name in enumerate(datasets(result)):
        rows = of(result, name)
        ks, means, spreads = ([row[key] for row in rows] for key in ("k", "mean", "std"))
        heights, reach = [100 * mean for mean in means], [100 * std for std in spreads]
        axis.errorbar(ks, heights, yerr=reach, color=COLOURS[i], marker=MARKERS[i], ms=5, lw=1.5, capsize=2,
                      elinewidth=0.8, label=title(name))  # fmt: skip
        chosen = [row for row in rows if row["recipe"]]
        axis.plot([row["k"] for row in chosen], [100 * row["mean"] for row in chosen], "o", ms=13, mfc="none",
                  color=COLOURS[i])  # fmt: skip
    axis.set(
        xlabel="k, nodes attended to per head", ylabel="micro-F1 on test nodes, in percent", xticks=range(0, 21, 2)
    )
    axis.set_title("Micro-F1 against k: mean ± standard deviation over runs; circles: the recipe's k", fontsize=10)
    plain(axis)
    axis.legend(frameon=False)
    return {"k-sweep": figure}


QUESTION = "How does micro-F1 depend on k, on a homophilic and on a heterophilic graph?"
EXPERIMENT = Experiment("k-sweep", QUESTION, collect, tables, draw)
