"""The heat kernel, a low-pass filter, instead of the learned filter."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from asgat.config import OPTIONS
from asgat.recipe import FOUND
from reproduce import paper
from reproduce.experiment import Result, Row, Table, datasets_of, difference, mean_std, row_of
from reproduce.experiments.scores import printed_score, score
from reproduce.plotting import COLOURS, ERROR_BARS, PAPER, dataset_title, panels, percent
from reproduce.study import Study, study_config

ROOT = {**dict.fromkeys(OPTIONS, False), "root": True}  # this option only
# Form → model and settings; heat.toml has the others.
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
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
def searched_settings() -> dict[str, Any]:
    """The results of searches of the same length: data set → form → settings."""
    text = resources.files("reproduce.experiments").joinpath("heat.toml").read_text(encoding="utf-8")
    return {dataset: {form: {key: value for key, value in own.items() if key != FOUND} for form, own in forms.items()}
            for dataset, forms in tomllib.loads(text).items()}  # fmt: skip


def form_settings(dataset: str, form: str) -> dict[str, Any]:
    """The settings of a form; without a search those of the recipe, with the same scale for all heat kernels."""
    _, own = FORMS[form]
    if dataset in searched_settings():
        return {**own, **searched_settings()[dataset][form]}
    scale = study_config(dataset, "asgat-heat").to_dict()["heat_scale"]
    return {**own, "heat_scale": scale} if own.get("filter") == "heat" else dict(own)


def rows(study: Study, dataset: str) -> Iterator[Row]:
    for form, (model, _) in FORMS.items():
        settings = form_settings(dataset, form)
        found = score(study, dataset, model, "micro_f1", **settings)
        if found is not None:
            row = {"dataset": dataset, "form": form, "model": model, "settings": settings}
            yield {**row, **found, **printed_score(PRINTED, form, dataset)}


def tables(result: Result) -> list[Table]:
    rows = []
    for row in result["rows"]:
        form = row["form"]
        learned = row_of(result, dataset=row["dataset"], form="learned + root" if "root" in form else "learned")
        gap = "" if "learned" in form or learned is None else difference(row["mean"], learned["mean"])
        scores = mean_std(row["mean"], row["std"]), mean_std(row["paper"], row["paper_std"])
        rows.append((dataset_title(row["dataset"]), form, *scores, difference(row["mean"], row["paper"]), gap))
    headings = ("data set", "form", "ours", "paper", "difference", "to learned")
    return [Table("Heat kernel: micro-F1 in percent", headings, rows, f"paper: {result['claim']}")]


def draw(result: Result) -> dict[str, Any]:
    datasets = datasets_of(result)
    figure, ((axis,),) = panels(max(6.4, 2.2 + 1.6 * len(datasets)), 4.6, grid="y")
    width = 0.8 / len(FORMS)
    for i, form in enumerate(FORMS):
        rows = [row_of(result, dataset=dataset, form=form) for dataset in datasets]
        means, spreads, theirs = percent(rows, "mean", "std", "paper")
        place = np.arange(len(datasets)) + (i - len(FORMS) / 2 + 0.5) * width
        hatch = (".." if "exact" in form else "") + ("//" if "root" in form else "")
        axis.bar(place, means, width, yerr=spreads, color=COLOURS[1 if form.startswith("heat") else 0], hatch=hatch,
                 edgecolor="white", error_kw=ERROR_BARS, label=form)  # fmt: skip
        axis.plot(place, theirs, "D", mfc="white", color=PAPER, ms=6, mew=1.4, label="paper" if i == 0 else None)
    axis.set_xticks(np.arange(len(datasets)), [dataset_title(name) for name in datasets])
    axis.set(ylim=(0, 100), ylabel="micro-F1 on test nodes, in percent")
    axis.set_title("Heat kernel exp(−sλ) and learned filter, without and with a root term", fontsize=10)
    figure.legend(loc="outside lower center", ncols=7 if len(datasets) > 3 else 3, frameon=False, fontsize=9)
    return {"heat": figure}
