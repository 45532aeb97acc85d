"""Attention heads silenced in trained models: all but one, and one alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch import Tensor

from asgat.experiments import paper
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import OURS, PAPER, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import Trained, try_train
from asgat.nn import ASGAT, ASGATConv
from asgat.training.metrics import micro_f1

HEADS = {"cora": 12, "citeseer": 14, "pubmed": 12}
OTHERS = 12  # of data sets the paper does not ask about
QUICK = ["cora"]
CLAIMS = {
    "keep": "any head kept alone loses accuracy, all of them about the same: only all together are best",
    "scaled": "not in the paper: the same with the kept head's weights times the number of heads, as loud as all were",
    "drop": "some heads left out lose little and some nothing: there is redundancy",
}
WORDS = {"keep": "one head kept", "scaled": "one head kept, as loud as all", "drop": "one head left out"}


@contextmanager
def silenced(conv: ASGATConv, heads: Sequence[int], factor: float = 1.0) -> Iterator[None]:
    """While it lasts, the attention weights of these heads are zero: what is left of their output is the bias.

    Those of the others are multiplied by a factor.
    """
    assert conv.concat, "heads that are averaged lie in one another's place"
    assert conv.root_weight is None, "a root term would be silenced with them"

    def replace(_: Any, __: Any, out: Tensor) -> Tensor:
        weight = torch.full((conv.heads, 1), factor, device=out.device)
        weight[list(heads)] = 0.0
        bias = torch.zeros((), device=out.device) if conv.bias is None else conv.bias.view(conv.heads, -1)
        return (bias + weight * (out.view(out.size(0), conv.heads, -1) - bias)).flatten(1)

    hook = conv.register_forward_hook(replace)
    try:
        yield
    finally:
        hook.remove()


def collect(study: Reproduction) -> Result:
    rows = []
    for dataset in study.pick(list(HEADS), QUICK):
        heads = HEADS.get(dataset, OTHERS)
        trained = try_train(study, dataset, "asgat-cheb", study.seeds[0], heads=heads)
        if trained is None:
            continue
        found = trained.remembered("heads", partial(ablate, trained, study.device))
        printed = {what: paper.HEADS.get(what, {}).get(dataset) for what in WORDS}
        rows.append({"dataset": dataset, "heads": heads, **found, "paper": printed})
    return {"model": "asgat-cheb", "claims": CLAIMS, "rows": rows}


@torch.no_grad()
def ablate(trained: Trained, device: torch.device) -> dict[str, Any]:
    """Micro-F1 of every run's model, and its change with one head kept and with one left out, head by head."""
    inputs = trained.inputs(device)
    found: dict[str, Any] = {"full": [], **{what: [] for what in WORDS}}
    for run in trained.runs:
        net = cast(ASGAT, trained.load(run, device))
        conv, test = net.convs[0], trained.split(run).test
        every = set(range(conv.heads))

        def score(
            heads: set[int], factor: float = 1.0, net: ASGAT = net, conv: ASGATConv = conv, test: Any = test
        ) -> float:
            with silenced(conv, sorted(heads), factor):
                prediction = cast(Tensor, net(*inputs)).argmax(-1).cpu().numpy()
            return micro_f1(trained.dataset.y[test], prediction[test])

        full = score(set())
        found["full"].append(full)
        found["keep"].append([score(every - {head}) - full for head in sorted(every)])
        found["scaled"].append([score(every - {head}, conv.heads) - full for head in sorted(every)])
        found["drop"].append([score({head}) - full for head in sorted(every)])
    best = max(range(len(trained.runs)), key=lambda i: trained.result["rows"][i]["val_score"])
    return {**found, "shown": best}


def tables(result: Result) -> list[Table]:
    shown = []
    for what, words in WORDS.items():
        table = Table(title=f"Change of micro-F1 in points, {words}", box=SIMPLE_HEAD)
        table.add_column("data set")
        for heading in ("ours", "range", "paper", "range"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("difference", justify="right")
        for row in result["rows"]:
            ours, theirs = np.array(row[what]), row["paper"][what]
            cells = [f"{100 * ours.mean():+.2f}", f"{100 * ours.max():+.1f} … {100 * ours.min():+.1f}"]
            cells += ["–", "–", "–"] if theirs is None else [
                f"{100 * np.mean(theirs):+.2f}",
                f"{100 * max(theirs):+.1f} … {100 * min(theirs):+.1f}",
                f"{100 * (ours.mean() - np.mean(theirs)):+.2f}",
            ]  # fmt: skip
            table.add_row(f"{title(row['dataset'])} ({row['heads']})", *cells)
        claim = CLAIMS[what] if what == "scaled" else f"Paper: {CLAIMS[what]}"
        table.caption = f"means over heads, ours over runs too. {claim}"
        shown.append(table)
    return shown


def draw(result: Result) -> dict[str, Any]:
    """Heads have no order of their own, so ours and the paper's are sorted by what they lose."""
    rows = result["rows"]
    figure = new(3.9 * len(rows) + 1.0, 7.6)
    axes = figure.subplots(len(WORDS), len(rows), squeeze=False, sharey="row")
    for line, what in enumerate(WORDS):
        for axis, row in zip(axes[line], rows, strict=True):
            ours = np.sort(100 * np.array(row[what]), axis=1)
            place = np.arange(1, ours.shape[1] + 1)
            axis.bar(place, ours.mean(axis=0), 0.75, yerr=ours.std(axis=0), color=OURS, alpha=0.85,
                     error_kw={"ecolor": "0.25", "lw": 0.9, "capsize": 2}, label="ours ± std over runs")  # fmt: skip
            theirs = row["paper"][what]
            if theirs is not None:
                axis.plot(place, 100 * np.sort(theirs), "D", mfc="white", color=PAPER, ms=6, mew=1.4, label="paper")
            axis.axhline(0.0, color="0.4", lw=0.8)
            axis.set_xticks(place)
            axis.tick_params(labelsize=8)
            axis.set_title(f"{title(row['dataset'])}: {WORDS[what]}", fontsize=10)
            plain(axis, "y")
        axes[line][0].set_ylabel("change of micro-F1, in points")
    for axis in axes[-1]:
        axis.set_xlabel("heads, from the largest loss to the smallest", fontsize=9)
    handles, labels = max((axis.get_legend_handles_labels() for axis in axes.flat), key=lambda pair: len(pair[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return {"heads": figure}


QUESTION = "How much does one head alone keep, and what is lost without one?"
EXPERIMENT = Experiment("heads", QUESTION, collect, tables, draw)
