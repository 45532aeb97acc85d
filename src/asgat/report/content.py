"""The content of a report, as one object of plain numbers and texts."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, brief
from asgat.estimator.trained_run import TrainedRun, checked_probability
from asgat.explain.attention_rows import pair_hops
from asgat.explain.copies import SIDES, operator_rows, split_copies
from asgat.explain.head_responses import HeadResponses, Kind, head_responses, oriented
from asgat.explain.responses import BAND_TABLE
from asgat.files.raw_file import RawFile
from asgat.graph.graph import Floats, Graph, Ints
from asgat.graph.homophily import beta, node_homophily
from asgat.kernels import row_softmax
from asgat.leaderboard.board import BoardFolder
from asgat.leaderboard.standings import AVERAGE, CUT, Leaderboard
from asgat.nn.attention_model import AttentionModel
from asgat.report.explorer import explorer
from asgat.report.findings import attention_findings, data_findings, training_findings
from asgat.report.next_steps import next_steps
from asgat.report.reliability import calibration, class_scores, share_with_interval
from asgat.spectral import SpectralOperator
from asgat.training.run_directory import RunDirectory, read_metadata

POINTS = 300  # of a training curve
CURVE_POINTS = 201  # of a response
HOPS = ("itself", "1", "2", "3", "4", "5 or more", "no path")
DISTANCE_NODES = 1000  # nodes whose attention distance is measured on a large graph
BINS = 5  # of β_v


def report_content(run: TrainedRun) -> dict[str, Any]:
    """All numbers and texts of a run's report by section, ready for JSON; a page of its own draws them."""
    result = RunDirectory(run.path).read_result()
    probability = checked_probability(run.logits())
    prediction = probability.argmax(axis=1)
    held_board = BoardFolder(run.path).read()
    board = Leaderboard.from_dict(held_board) if held_board and held_board.get("finished") else None
    model = board.chosen.name if board else run.name
    truth, test = run.y[run.test_mask], run.test_mask
    classes, calibrated = class_scores(truth, prediction[test], run.class_names), calibration(truth, probability[test])
    filters = distance = None
    flat: list[list[bool]] = []
    findings = list(training_findings(run, result, probability))
    if isinstance(run.model, AttentionModel):
        graph = run.attended_graph
        held = head_responses(run.model, graph, CURVE_POINTS)
        findings += attention_findings(result, held, run.model.layer_name)
        filters = filter_curves(held)
        flat = [[held.shape(head, "attention") == "flat" for head in layer.T] for layer in held.attention]
        distance = attention_distance(run.model, run.inputs[1], graph) if run.model.convs else None
    findings += data_findings(run)
    order = {"warning": 0, "note": 1, "good": 2}
    return {
        "title": f"{model} on {run.dataset.name}",
        "model": model,
        "dataset": run.dataset.name,
        "kept_run": int(read_metadata(run.path).get("run", 0)),
        "layer_name": getattr(run.model, "layer_name", "layer"),
        "sides": list(SIDES) if run.graph.directed else None,
        "classes": list(run.class_names),
        "summary": summary(run, result, prediction),
        "settings": result.get("config", {}),
        "versions": result.get("versions", {}),
        "leaderboard": leaderboard_table(board) if board else None,
        "health": [asdict(finding) for finding in sorted(findings, key=lambda finding: order[finding.level])],
        "curves": training_curves(run, result),
        "filters": filters,
        "homophily": accuracy_by_homophily(run, prediction),
        "confusion": confusion(run, prediction),
        "class_scores": classes,
        "calibration": calibrated,
        "distance": distance,
        "bands": BAND_TABLE,
        "explorer": explorer(run, probability, flat),
        "next_steps": [step._asdict() for step in next_steps(run, result, board, classes, calibrated)],
    }


def leaderboard_table(board: Leaderboard) -> dict[str, Any]:
    """The table that ``asgat fit`` prints, and its sentences; ``chosen`` is the row of the model shown."""
    headings, cells = board.cells()
    return {
        "unit": board.unit,
        "headings": headings,
        "cells": cells,
        "chosen": next((place for place, row in enumerate(board.lines) if row.name == board.chosen.name), None),
        "caption": _caption(board),
        "sentences": [board.choice, *board.sentences],
        "notes": [*board.notes, *([CUT] if board.cut else [])],
    }


def _caption(board: Leaderboard) -> str:
    if board.chosen.name == AVERAGE:
        return "The marked row is the model shown here; below it, best on validation nodes first."
    alone = f" The row has the scores of one of its {board.members} networks." if board.members > 1 else ""
    return f"Best on validation nodes first; the model of the marked row is the one shown here.{alone}"


def summary(run: TrainedRun, result: dict[str, Any], prediction: Ints) -> list[dict[str, str]]:
    """The tiles at the top of the page: a label, a value and a note each."""
    runs = len(result.get("rows") or [])
    tiles = []
    for key, label in (("roc_auc", "ROC-AUC"), ("micro_f1", "micro-F1"), ("macro_f1", "macro-F1")):
        spread = result.get(key) or {}
        if spread.get("mean") is not None:
            note = f"± {100 * spread['std']:.1f} over {runs} runs" if runs > 1 else "one run"
            tiles.append((f"test {label}", f"{100 * spread['mean']:.1f} %", note))
    test = run.test_mask
    if test.any():
        right = int((prediction[test] == run.y[test]).sum())
        share = f"{100 * right / test.sum():.1f} %"
        tiles.append(("model shown here", share, f"{right:,} of {int(test.sum()):,} test nodes"))
    graph = run.graph
    kind = "directed edges" if graph.directed else "edges"
    tiles.append(("graph", f"{graph.num_nodes:,} nodes", f"{graph.edges_once()[0].shape[1]:,} {kind}"))
    tiles.append(("task", f"{run.dataset.num_classes} classes", f"{run.dataset.num_features:,} features"))
    homophily = beta(graph, run.y)
    if np.isfinite(homophily):
        tiles.append(("homophily β", f"{homophily:.2f}", "neighbours of the same class"))
    size = sum(parameter.numel() for one in (run, *run.partners) for parameter in one.model.parameters())
    note = f"{result['ms_per_epoch']:.1f} ms per epoch" if result.get("ms_per_epoch") else "trained"
    tiles.append(("weights", f"{size:,}", note))
    return [{"label": label, "value": value, "note": note} for label, value, note in tiles]


def training_curves(run: TrainedRun, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Losses and validation score by epoch of every run, of the attempt that was kept, thinned to a few hundred."""
    path = run.path / "metrics.jsonl"
    content = RawFile.read(path).content if path.exists() else b""
    try:
        lines = [json.loads(line) for line in content.decode().splitlines()]
        curves = []
        for row in result.get("rows") or []:
            if not (mine := [line for line in lines if line["run"] == row["run"]]):
                continue
            attempt = _kept_attempt(mine, row, run.members)
            kept = [line for line in mine if line["attempt"] == attempt]
            best = int(row["best_epoch"])
            step = -(-len(kept) // POINTS)
            thin = [line for i, line in enumerate(kept) if i % step == 0 or line["epoch"] == best or i == len(kept) - 1]
            columns = {key: [line[key] for line in thin] for key in ("epoch", "train_loss", "val_loss", "val_score")}
            curves.append({"run": row["run"], "best_epoch": best, "restarts": row.get("restarts", 0), **columns})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise AsgatError(f"{path} cannot be read as metrics: {brief(repr(error))}; train with --fresh.") from error
    return curves


def _kept_attempt(lines: Sequence[dict[str, Any]], row: dict[str, Any], members: int) -> int:
    """The attempt whose loss at the kept epoch is the run's; for an ensemble, which has its own loss, the first."""
    at_best = [line for line in lines if line["epoch"] == row["best_epoch"]]
    if at_best and members > 1:
        return min(int(line["attempt"]) for line in at_best)
    nearest = min(at_best or lines, key=lambda line: abs(line["val_loss"] - row["val_loss"]))
    return int(nearest["attempt"])


def filter_curves(held: HeadResponses) -> dict[str, Any] | None:
    """Every head's response, the name of its shape, and the spectral density; None if there is no head.

    ``layers`` holds the attention heads, ``filter_layers`` the filter heads, with the share of each band.
    """
    if not (held.attention or held.filters):
        return None

    def curve(response: Floats, kind: Kind) -> dict[str, Any]:
        return {"response": _rounded(response), "character": held.shape(response, kind)}

    return {
        "frequency": _rounded(held.frequency),
        "density": _rounded(held.density),
        "layers": [[curve(head, "attention") for head in response.T] for response in held.attention],
        "filter_layers": [
            [{**curve(oriented(head), "filters"), "bands": _rounded(held.band_shares(head))} for head in response.T]
            for response in held.filters
        ],
    }


def accuracy_by_homophily(run: TrainedRun, prediction: Ints) -> list[dict[str, Any]]:
    """Accuracy on test nodes in five bins of β_v, with a 95 % interval (Wilson); isolated nodes are a sixth group."""
    test = run.test_mask
    alone = run.graph.with_self_loops("remove").isolated
    right = prediction == run.y
    # 3 of 5 neighbours is 0.6, however it is rounded.
    place = np.minimum((BINS * node_homophily(run.graph, run.y) + 1e-9).astype(int), BINS - 1)
    labels = [f"[{low / BINS:.1f}, {(low + 1) / BINS:.1f}{']' if low == BINS - 1 else ')'}" for low in range(BINS)]
    groups = {label: (place == low) & test & ~alone for low, label in enumerate(labels)}
    if (alone & test).any():
        groups["no neighbour"] = alone & test
    return [
        {"label": label, **share_with_interval(int(right[nodes].sum()), int(nodes.sum()))}
        for label, nodes in groups.items()
    ]


def confusion(run: TrainedRun, prediction: Ints) -> list[list[int]]:
    """Test nodes by class (rows) and prediction (columns)."""
    classes, test = run.dataset.num_classes, run.test_mask
    counts = np.bincount(classes * run.y[test] + prediction[test], minlength=classes**2)
    return counts.reshape(classes, classes).tolist()


def attention_distance(
    model: AttentionModel, operator: SpectralOperator, graph: Graph, seed: int = 0
) -> dict[str, Any]:
    """The share of each head's attention by distance, over all nodes or, on a large graph, a sample.

    In a directed graph a head has a row of shares for each side of the nodes that attend.
    """
    nodes = np.arange(graph.num_nodes)
    if graph.num_nodes > 3 * DISTANCE_NODES:
        nodes = np.sort(np.random.default_rng(seed).choice(graph.num_nodes, DISTANCE_NODES, replace=False))
    rows = operator_rows(graph, nodes)
    own, side = split_copies(graph, rows)
    parts = [slice(None)] if side is None else [side == place for place in range(len(SIDES))]
    layers = []
    for conv in model.convs:
        selected = operator.select(conv.filter, conv.k, conv.include_unreachable)
        index, score = (part[:, rows].detach().cpu() for part in selected)
        others, _ = split_copies(graph, index.numpy())
        hops, weight = pair_hops(graph, own, others), row_softmax(score).numpy()
        group = np.where(hops < 0, 6, np.minimum(hops, 5))
        heads = [(g[part], w[part]) for g, w in zip(group, weight, strict=True) for part in parts]
        total = [np.bincount(g.ravel(), w.ravel(), minlength=len(HOPS)) for g, w in heads]
        layers.append([_rounded(shares / max(shares.sum(), 1e-12)) for shares in total])
    return {"hops": list(HOPS), "layers": layers, "nodes": len(nodes), "total": graph.num_nodes}


def _rounded(values: npt.NDArray[np.floating[Any]]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
