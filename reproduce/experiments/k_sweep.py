"""Micro-F1 by k, the number of nodes a head attends to."""

from collections.abc import Iterator
from typing import Any

from reproduce.experiment import Result, Row, Table, datasets_of, mean_std, row_of, rows_of
from reproduce.plotting import COLOURS, MARKERS, dataset_title, panels, percent
from reproduce.study import Study, study_config

KS = list(range(1, 21))
QUICK_KS = [1, 3, 6, 12, 20]


def rows(study: Study, dataset: str) -> Iterator[Row]:
    """Trains with every k, on all runs of the first seed."""
    own = study_config(dataset, "asgat-cheb").to_dict()["k"]
    for k in QUICK_KS if study.quick else KS:
        trained = study.train(dataset, "asgat-cheb", k=k)
        if trained is not None:
            score, validation = trained.result["micro_f1"], trained.result["val_micro_f1"]
            yield {"dataset": dataset, "k": k, **score, "val_mean": validation, "recipe": k == own}


def spread(rows: list[Row], above: int) -> float:
    """The range of the means over all k above a value."""
    means = [row["mean"] for row in rows if row["k"] > above]
    return max(means) - min(means) if means else float("nan")


def tables(result: Result) -> list[Table]:
    names = datasets_of(result)

    def cell(name: str, k: int) -> str:
        row = row_of(result, dataset=name, k=k)
        return mean_std(row["mean"], row["std"]) + (" ←" if row["recipe"] else "  ") if row else "–"

    rows = [(str(k), *(cell(name, k) for name in names)) for k in dict.fromkeys(row["k"] for row in result["rows"])]
    steady = [f"{dataset_title(name)} {100 * spread(rows_of(result, dataset=name), 6):.1f} points" for name in names]
    ours = f"Range of means for k > 6 here: {', '.join(steady)}"
    caption = f"← the recipe's k. Paper (figure only): {result['claim']}. {ours}"
    return [Table("Micro-F1 in percent by k, asgat-cheb", ("k", *map(dataset_title, names)), rows, caption)]


def draw(result: Result) -> dict[str, Any]:
    figure, ((axis,),) = panels(7.2, 4.4)
    for i, name in enumerate(datasets_of(result)):
        rows = rows_of(result, dataset=name)
        means, spreads = percent(rows, "mean", "std")
        axis.errorbar([row["k"] for row in rows], means, yerr=spreads, color=COLOURS[i], marker=MARKERS[i], ms=5,
                      lw=1.5, capsize=2, elinewidth=0.8, label=dataset_title(name))  # fmt: skip
        chosen = [row for row in rows if row["recipe"]]
        axis.plot([row["k"] for row in chosen], [100 * row["mean"] for row in chosen], "o", ms=13, mfc="none",
                  color=COLOURS[i])  # fmt: skip
    axis.set(xlabel="k, nodes attended to per head", ylabel="micro-F1 on test nodes, in percent")
    axis.set_xticks(range(0, 21, 2))
    axis.set_title("Micro-F1 by k: mean ± standard deviation over runs; circles: the recipe's k", fontsize=10)
    axis.legend(frameon=False)
    return {"k-sweep": figure}
