"""What to know about a run before trusting it, one sentence per finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asgat.estimator.trained_run import HEALTH_FILE, TrainedRun, read_object
from asgat.graph.homophily import beta
from asgat.report.figures import character
from asgat.training.metrics import majority_share

Level = Literal["good", "note", "warning"]
FEW = 5  # training nodes of a class below which it is hardly learned


@dataclass(frozen=True)
class Finding:
    """One finding: how serious it is, what it is about, and a sentence."""

    level: Level
    about: str
    text: str


def data_findings(run: TrainedRun) -> list[Finding]:
    """Of the graph and its labels."""
    graph, y, names = run.graph, run.y, run.class_names
    found = []
    how_alike = beta(graph, y)
    if np.isfinite(how_alike):
        kind = "mostly of one class" if how_alike > 0.6 else "mixed" if how_alike > 0.3 else "mostly of other classes"
        found.append(Finding("note", "homophily", f"β = {how_alike:.2f}: neighbours are {kind}."))
    examined = run.path / HEALTH_FILE
    changes = read_object(examined).get("changes", []) if examined.exists() else []  # of `asgat fit`, in sentences
    found += [Finding("note", "as it was read", str(change)) for change in changes]
    graph = run.attended_graph if run.similar else graph  # what attention walks on
    isolated = int(graph.isolated.sum())
    if isolated and not changes:
        share = isolated / graph.num_nodes
        text = f"{count(isolated, 'node has', 'nodes have')} no edge ({share:.1%}) and can attend to nothing else."
        found.append(Finding("warning" if share > 0.1 else "note", "isolated nodes", text))
    components = int(graph.components.max(initial=-1)) + 1 - isolated
    if components > 1:
        text = f"The graph falls into {components:,} connected parts; attention stays within a part."
        found.append(Finding("note", "components", text))
    unlabelled = int((y < 0).sum())
    if unlabelled:
        text = f"{count(unlabelled, 'node has', 'nodes have')} no label and no part in training or scores."
        found.append(Finding("note", "labels", text))
    train = np.bincount(y[run.train_mask], minlength=len(names))
    rare = [name for name, number in zip(names, train, strict=True) if number < FEW]
    if rare:
        listed = ", ".join(rare[:5]) + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
        text = f"Fewer than {FEW} training nodes: {listed}. Scores of such classes say little."
        found.append(Finding("warning", "rare classes", text))
    return found


def training_findings(run: TrainedRun, result: dict[str, Any], prediction: npt.NDArray[np.int64]) -> list[Finding]:
    """Of how training went."""
    y, found = run.y, []
    test, train = run.test_mask, run.train_mask
    area = (result.get("roc_auc") or {}).get("mean")
    if run.dataset.metric == "roc_auc" and area is not None:
        text = f"The area under the ROC curve is {area:.1%} on the test nodes; guessing would get 50.0%."
        found.append(Finding("good" if area > 0.52 else "warning", "learned something", text))
    elif test.any():
        score, chance = float(np.mean(prediction[test] == y[test])), majority_share(y[train], y[test])
        gain = f"{score:.1%} of the test nodes are right; always naming the largest class would get {chance:.1%}."
        level: Level = "good" if score > chance + 0.02 else "warning"
        found.append(Finding(level, "learned something", gain))
        learned = float(np.mean(prediction[train] == y[train]))
        if learned - score > 0.25:
            text = f"Training nodes are {learned:.1%} right, test nodes {score:.1%}; more dropout may help."
            found.append(Finding("note", "overfitting", text))
    if run.members > 1:
        text = f"{run.members} networks answer together; training curves, filters and attention are the first one's."
        found.append(Finding("note", "committee", text))
    if run.similar:
        text = f"Each node is also joined to the {run.similar} most like it in features and attends along these too."
        found.append(Finding("note", "similar nodes", text))
    rows = result.get("rows") or []
    if result.get("finished") is False:
        text = f"{len(rows)} of {len(result.get('runs', rows))} runs are finished; the same command goes on from there."
        found.append(Finding("warning", "unfinished", text))
    restarts = int(result.get("restarts") or 0)
    if restarts:
        text = f"{count(restarts, 'start was', 'starts were')} thrown away because nothing was learned."
        found.append(Finding("note", "restarts", text))
    limit = getattr(run.config, "epochs", None)
    late = [row for row in rows if limit and row.get("best_epoch", 0) >= limit]
    if late:
        text = f"Validation was still improving at the last epoch, {limit}, in {count(len(late), 'run')}; allow more."
        found.append(Finding("warning", "epochs", text))
    return found


def attention_findings(
    result: dict[str, Any],
    frequency: npt.NDArray[np.float64],
    density: npt.NDArray[np.float64],
    responses: list[npt.NDArray[np.float64]],
) -> list[Finding]:
    """Of the heads and of the certificate; ``responses`` holds [n, heads] per layer."""
    found = []
    flat = [
        f"head {head + 1} of layer {layer}"
        for layer, response in enumerate(responses, start=1)
        for head in range(response.shape[1])
        if character(response[:, head], frequency, density) == "flat"
    ]
    if flat:
        listed = ", ".join(flat[:4]) + (f" and {len(flat) - 4} more" if len(flat) > 4 else "")
        text = f"Flat over the whole spectrum: {listed}. Such a head prefers no node to another, but itself at most."
        found.append(Finding("warning", "flat heads", text))
    else:
        found.append(Finding("good", "heads", "Every head has a shape of its own over the spectrum; none is flat."))
    share = result.get("certified_share")
    if share is not None:
        bound = result.get("max_bound") or 0.0
        text = f"{share:.1%} of the attention rows are proven to be those of all pairs"
        text += "." if share >= 1.0 or not bound else f"; in the others a score is missed by at most {bound:.2g}."
        found.append(Finding("good" if share >= 1.0 or bound < 0.1 else "warning", "certificate", text))
    fallback = result.get("fallback")
    if fallback:
        text = f"The rational form did not converge for {count(fallback['heads'], 'head')}; Chebyshev took its place."
        found.append(Finding("warning", "fallback", text))
    return found


def count(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: ``1 head``, ``2 heads``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
