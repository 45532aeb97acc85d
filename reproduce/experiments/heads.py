"""Attention heads removed from trained models: all but one, and only one."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from asgat.nn import ASGAT, ASGATConv
from reproduce import paper
from reproduce.experiment import Result, Row, Table
from reproduce.plotting import ERROR_BARS, OURS, PAPER, dataset_title, panels, shared_legend
from reproduce.study import Study, Trained

HEADS = {"cora": 12, "citeseer": 14, "pubmed": 12}
OTHERS = 12  # on data sets that are not in the paper
LABELS = {"keep": "one head kept", "scaled": "one head kept, scaled up", "drop": "one head left out"}


def heads_removed(conv: ASGATConv, heads: Sequence[int], factor: float = 1.0) -> RemovableHandle:
    """In a ``with``, the attention weights of these heads are zero, so that their bias remains, the others' scaled."""
    assert conv.concat, "averaged heads cannot be separated"
    assert conv.root_weight is None, "a root term would be removed with them"

    weight = torch.full((conv.heads,), factor)
    weight[list(heads)] = 0.0

    def scale(_: Any, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        attention = named["attention"]  # which the model gives to its layers
        return given, {**named, "attention": attention.scale(weight.to(attention.weight))}

    return conv.register_forward_pre_hook(scale, with_kwargs=True)


def rows(study: Study, dataset: str) -> Iterator[Row]:
    heads = HEADS.get(dataset, OTHERS)
    trained = study.train(dataset, "asgat-cheb", heads=heads)
    if trained is not None:
        printed = {what: paper.HEADS.get(what, {}).get(dataset) for what in LABELS}
        yield {"dataset": dataset, "heads": heads, **ablate(trained, study.device), "paper": printed}


@torch.no_grad()
def ablate(trained: Trained, device: torch.device) -> Row:
    """Micro-F1 of every run's model, and its change with one head kept and with one left out, head by head."""
    inputs = trained.inputs(device)
    found: Row = {"full": [], **{what: [] for what in LABELS}}
    for run in trained.runs:
        net = cast(ASGAT, trained.load(run, device))
        every = range(net.convs[0].heads)

        def score(heads: list[int], factor: float = 1.0, run: int = run, net: ASGAT = net) -> float:
            with heads_removed(net.convs[0], heads, factor):
                return trained.test_score(run, cast(Tensor, net(*inputs)))

        others = [[other for other in every if other != head] for head in every]
        full = score([])
        found["full"].append(full)
        found["keep"].append([score(heads) - full for heads in others])
        found["scaled"].append([score(heads, len(every)) - full for heads in others])
        found["drop"].append([score([head]) - full for head in every])
    best = max(range(len(trained.runs)), key=lambda i: trained.result["rows"][i]["val_score"])
    return {**found, "shown": best}


def tables(result: Result) -> list[Table]:
    def mean_range(changes: Any) -> list[str]:
        return [f"{100 * np.mean(changes):+.2f}", f"{100 * np.max(changes):+.1f} … {100 * np.min(changes):+.1f}"]

    def cells(row: Row, what: str) -> list[str]:
        ours, theirs = row[what], row["paper"][what]
        if theirs is None:
            return [*mean_range(ours), "–", "–", "–"]
        return [*mean_range(ours), *mean_range(theirs), f"{100 * (np.mean(ours) - np.mean(theirs)):+.2f}"]

    headings = ("data set", "ours", "range", "paper", "range", "difference")
    shown = []
    for what, label in LABELS.items():
        rows = [(f"{dataset_title(row['dataset'])} ({row['heads']})", *cells(row, what)) for row in result["rows"]]
        claim = ("" if what == "scaled" else "Paper: ") + result["claims"][what]
        caption = f"means over heads, ours over runs too. {claim}"
        shown.append(Table(f"Change of micro-F1 in points, {label}", headings, rows, caption))
    return shown


def draw(result: Result) -> dict[str, Any]:
    """Heads are in no particular order, so ours and the paper's are sorted by their loss."""
    rows = result["rows"]
    figure, axes = panels(3.9 * len(rows) + 1.0, 7.6, len(LABELS), len(rows), "y", sharey="row")
    for line, what in enumerate(LABELS):
        for axis, row in zip(axes[line], rows, strict=True):
            ours = np.sort(100 * np.array(row[what]), axis=1)
            place = np.arange(1, ours.shape[1] + 1)
            axis.bar(place, ours.mean(axis=0), 0.75, yerr=ours.std(axis=0), color=OURS, alpha=0.85,
                     error_kw=ERROR_BARS, label="ours ± std over runs")  # fmt: skip
            theirs = row["paper"][what]
            if theirs is not None:
                axis.plot(place, 100 * np.sort(theirs), "D", mfc="white", color=PAPER, ms=6, mew=1.4, label="paper")
            axis.axhline(0.0, color="0.4", lw=0.8)
            axis.set_xticks(place)
            axis.tick_params(labelsize=8)
            axis.set_title(f"{dataset_title(row['dataset'])}: {LABELS[what]}", fontsize=10)
    figure.supylabel("change of micro-F1, in points", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("heads, from the largest loss to the smallest", fontsize=9)
    shared_legend(figure, axes, 2)
    return {"heads": figure}
