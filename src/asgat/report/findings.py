"""Checks of a run before its numbers are trusted, one sentence per finding."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from asgat.errors import counted, listed
from asgat.estimator.trained_run import HEALTH_FILE, TrainedRun
from asgat.explain.head_responses import HeadResponses, Kind
from asgat.files.user_file import read_user_file
from asgat.graph.graph import Floats
from asgat.graph.homophily import beta
from asgat.leaderboard.claims import gain_over_guessing, is_better
from asgat.leaderboard.intervals import Interval, NodePredictions, guess_scores

Level = Literal["good", "note", "warning"]
FEW = 5  # a class with fewer training nodes is hardly learned


@dataclass(frozen=True)
class Finding:
    """One finding: its level, its subject, and a sentence."""

    level: Level
    about: str
    text: str


def data_findings(run: TrainedRun) -> Iterator[Finding]:
    graph, y, names = run.graph, run.y, run.class_names
    homophily = beta(graph, y)
    if np.isfinite(homophily):
        kind = "mostly of one class" if homophily > 0.6 else "mixed" if homophily > 0.3 else "mostly of other classes"
        yield Finding("note", "homophily", f"β = {homophily:.2f}: neighbours are {kind}.")
    examined = run.path / HEALTH_FILE
    changes = read_user_file(examined).json_object().get("changes", []) if examined.exists() else []
    for change in changes:
        yield Finding("note", "data as read", str(change))
    graph = run.attended_graph if run.similar else graph
    isolated = int(graph.isolated.sum())
    if isolated and not changes:
        share = isolated / graph.num_nodes
        text = f"{counted(isolated, 'node has', 'nodes have')} no edge ({share:.1%}) and can attend only to themselves."
        yield Finding("warning" if share > 0.1 else "note", "isolated nodes", text)
    components = int(graph.components.max(initial=-1)) + 1 - isolated
    if components > 1:
        text = f"The graph has {components:,} connected components; attention stays within a component."
        yield Finding("note", "components", text)
    unlabelled = int((y < 0).sum())
    if unlabelled:
        text = f"{counted(unlabelled, 'node has', 'nodes have')} no label and are not used in training or scores."
        yield Finding("note", "labels", text)
    train = np.bincount(y[run.train_mask], minlength=len(names))
    rare = [name for name, number in zip(names, train, strict=True) if number < FEW]
    if rare:
        text = f"Fewer than {FEW} training nodes: {listed(rare)}. Scores of these classes are unreliable."
        yield Finding("warning", "rare classes", text)


def training_findings(run: TrainedRun, result: dict[str, Any], probability: Floats) -> Iterator[Finding]:
    y, test, train, prediction = run.y, run.test_mask, run.train_mask, probability.argmax(axis=1)
    area, tested = (
        (result.get("roc_auc") or {}).get("mean"),
        [NodePredictions.of(run.dataset.splits[0], y, probability)],
    )
    if run.dataset.metric == "roc_auc" and area is not None:
        text = f"The area under the ROC curve is {area:.1%} on the test nodes; guessing gives 50.0%."
        yield _learned(text, gain_over_guessing("roc_auc", tested))
    elif test.any():
        score, guess = float(np.mean(prediction[test] == y[test])), guess_scores(tested)["micro_f1"]
        text = f"Test accuracy is {score:.1%}; guessing gives {guess:.1%}."
        yield _learned(text, gain_over_guessing("micro_f1", tested))
        learned = float(np.mean(prediction[train] == y[train]))
        if learned - score > 0.25:
            text = f"Training accuracy is {learned:.1%}, test accuracy {score:.1%}; more dropout may help."
            yield Finding("note", "overfitting", text)
    if run.averaged:
        text = f"The average of {run.averaged}; training curves, filters and attention are those of the first."
        yield Finding("note", "ensemble", text)
    if run.similar:
        text = f"Each node is also linked to the {run.similar} most similar in features; attention uses these links."
        yield Finding("note", "similar nodes", text)
    rows = result.get("rows") or []
    if result.get("finished") is False:
        text = f"{len(rows)} of {len(result.get('runs', rows))} runs are finished; the same command continues."
        yield Finding("warning", "unfinished", text)
    restarts = int(result.get("restarts") or 0)
    if restarts:
        text = f"{counted(restarts, 'attempt was', 'attempts were')} discarded because nothing was learned."
        yield Finding("note", "restarts", text)
    limit = run.config.epochs
    late = [row for row in rows if row["best_epoch"] >= limit]
    if late:
        text = f"{counted(len(late), 'run')} still improved on validation at the last epoch, {limit}; set more epochs."
        yield Finding("warning", "epochs", text)


def _learned(text: str, gain: Interval | None) -> Finding:
    better = is_better(gain)
    text = text if better else f"{text} That is not significantly better."
    return Finding("good" if better else "warning", "learned something", text)


def attention_findings(result: dict[str, Any], held: HeadResponses, layer_name: str) -> Iterator[Finding]:
    """Findings about heads and certificate."""
    kinds: tuple[tuple[Kind, list[Floats], str, str], ...] = (
        ("attention", held.attention, "head", "gives all other nodes the same score"),
        ("filters", held.filters, "filter head", "passes a node's own features on and uses no other node"),
    )
    any_flat = False
    for kind, layers, noun, effect in kinds:
        flat = [
            f"{noun} {head} of {layer_name} {layer}"
            for layer, response in enumerate(layers, start=1)
            for head, values in enumerate(response.T, start=1)
            if held.shape(values, kind) == "flat"
        ]
        if flat:
            any_flat = True
            text = f"Flat over the whole spectrum: {listed(flat, 4)}. Such a head {effect}."
            yield Finding("warning", f"flat {noun}s", text)
    if not any_flat and (held.attention or held.filters):
        yield Finding("good", "heads", "No head is flat over the spectrum.")
    if not held.attention:
        text = "The model has no attention to explore; what its filters pass is under filter responses."
        if not held.filters:
            text = "The model has no attention to explore: its blocks take the mean over neighbours."
        yield Finding("note", "no attention", text)
    share = result.get("certified_share")
    if share is not None:
        bound = result.get("max_bound") or 0.0
        text = f"{share:.1%} of the attention rows are proven equal to those computed from all pairs"
        text += "." if share >= 1.0 or not bound else f"; in the others a score is off by at most {bound:.2g}."
        yield Finding("good" if share >= 1.0 or bound < 0.1 else "warning", "certificate", text)
    fallback = result.get("fallback")
    if fallback:
        text = (
            f"The rational form did not converge for {counted(fallback['heads'], 'head')}; Chebyshev was used instead."
        )
        yield Finding("warning", "fallback", text)
