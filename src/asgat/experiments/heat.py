"""The heat kernel, a low-pass filter, in the place of the learned one."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.config import OPTIONS
from asgat.experiments import paper, scores
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, PAPER, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.scores import percent, points
from asgat.experiments.trained_models import config_of
from asgat.recipe import FOUND

DATASETS = ["cora", "citeseer", "chameleon", "wisconsin", "cornell", "texas"]
QUICK = ["cora", "texas"]
CLAIM = "comparable to the learned filter on homophilic graphs, far below it on heterophilic ones"
ROOT = {**dict.fromkeys(OPTIONS, False), "root": True}  # of the options this one alone
# name → model and settings it stands for; the others are those heat.toml has for it.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "heat, exact": ("asgat-heat", {"operator": "exact"}),
    "heat": ("asgat-heat", {}),
    "learned": ("asgat-cheb", {}),
    "heat, exact + root": ("asgat-plus", {"filter": "heat", "operator": "exact", **ROOT}),
    "heat + root": ("asgat-plus", {"filter": "heat", **ROOT}),
    "learned + root": ("asgat-plus", ROOT),
}
PRINTED = {
    "heat, exact": paper.HEAT["asgat-heat-exact"],
    "heat": paper.HEAT["asgat-heat"],
    "learned": paper.MICRO["asgat-cheb"],
}


@cache
def searched() -> dict[str, Any]:
    """What searches of the same length found: data set → name of the form → settings."""
    text = resources.files("asgat.experiments").joinpath("heat.toml").read_text(encoding="utf-8")
    return {dataset: {form: {key: value for key, value in own.items() if key != FOUND} for form, own in forms.items()}
            for dataset, forms in tomllib.loads(text).items()}  # fmt: skip


def settings_of(dataset: str, form: str) -> dict[str, Any]:
    """The settings of a form; on a data set that was not searched the recipe's, with one scale for all heat kernels."""
    _, own = ROWS[form]
    if dataset in searched():
        return {**own, **searched()[dataset][form]}
    scale = config_of(dataset, "asgat-heat").to_dict()["heat_scale"]
    return {**own, "heat_scale": scale} if own.get("filter") == "heat" else dict(own)


def collect(study: Reproduction) -> Result:
    rows = []
    for dataset in study.pick(DATASETS, QUICK):
        for name, (model, _) in ROWS.items():
            changes = settings_of(dataset, name)
            found = scores.score(study, dataset, model, "micro_f1", **changes)
            if found is not None:
                printed = PRINTED.get(name, {}).get(dataset)
                theirs = {"paper": printed.mean if printed else None, "paper_std": printed.std if printed else None}
                rows.append({"dataset": dataset, "form": name, "model": model, "settings": changes, **found, **theirs})
    return {"claim": CLAIM, "rows": rows}


def find(result: Result, dataset: str, form: str) -> dict[str, Any] | None:
    return next((r for r in result["rows"] if (r["dataset"], r["form"]) == (dataset, form)), None)


def tables(result: Result) -> list[Table]:
    table = Table(title="Heat kernel: micro-F1 in percent", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("data set", no_wrap=True)
    for heading in ("form", "ours", "paper", "difference", "to learned"):
        table.add_column(heading, justify="left" if heading == "form" else "right", no_wrap=True)
    for row in result["rows"]:
        learned = find(result, row["dataset"], "learned + root" if "root" in row["form"] else "learned")
        theirs = "–" if row["paper"] is None else f"{100 * row['paper']:.1f} ± {100 * row['paper_std']:.1f}"
        gap = "" if "learned" in row["form"] or learned is None else points(row["mean"], learned["mean"])
        difference = points(row["mean"], row["paper"])
        table.add_row(title(row["dataset"]), row["form"], percent(row), theirs, difference, gap)
    table.caption = f"paper: {CLAIM}"
    return [table]


def draw(result: Result) -> dict[str, Any]:
    datasets = list(dict.fromkeys(row["dataset"] for row in result["rows"]))
    figure = new(max(6.4, 2.2 + 1.6 * len(datasets)), 4.6)
    axis = figure.subplots()
    width = 0.8 / len(ROWS)
    hatches = {form: (".." if "exact" in form else "") + ("//" if "root" in form else "") for form in ROWS}
    colours = {"heat": COLOURS[1], "learned": COLOURS[0]}
    for i, form in enumerate(ROWS):
        rows = [find(result, dataset, form) for dataset in datasets]
        means, spreads = ([np.nan if r is None else 100 * r[key] for r in rows] for key in ("mean", "std"))
        theirs = [np.nan if r is None or r["paper"] is None else 100 * r["paper"] for r in rows]
        place = np.arange(len(datasets)) + (i - len(ROWS) / 2 + 0.5) * width
        axis.bar(place, means, width, yerr=spreads, color=colours[form.split(",")[0].split()[0]], hatch=hatches[form],
                 edgecolor="white", error_kw={"ecolor": "0.25", "lw": 0.9, "capsize": 2}, label=form)  # fmt: skip
        axis.plot(place, theirs, "D", mfc="white", color=PAPER, ms=6, mew=1.4, label="paper" if i == 0 else None)
    axis.set_xticks(np.arange(len(datasets)), [title(name) for name in datasets])
    axis.set(ylim=(0, 100), ylabel="micro-F1 on test nodes, in percent")
    axis.set_title("Heat kernel exp(−sλ) and learned filter, without and with a root term", fontsize=10)
    plain(axis, "y")
    figure.legend(loc="outside lower center", ncols=7 if len(datasets) > 3 else 3, frameon=False, fontsize=9)
    return {"heat": figure}


QUESTION = "What is lost when the learned filter is replaced by a low-pass heat kernel?"
EXPERIMENT = Experiment("heat", QUESTION, collect, tables, draw)
