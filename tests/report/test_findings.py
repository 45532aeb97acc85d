"""The findings of a report."""

from dataclasses import replace

import numpy as np
import pytest

from asgat.estimator.trained_run import load_run
from asgat.explain.head_responses import HeadResponses
from asgat.graph import Graph
from asgat.report.findings import attention_findings, data_findings, training_findings

FREQUENCY = np.linspace(0.0, 2.0, 101)
FLAT = np.ones_like(FREQUENCY)


def about(findings):
    return {finding.about: finding for finding in findings}


def certain(prediction):
    """Probabilities of two classes that predict these."""
    return np.eye(2)[prediction]


def on_graph(run, edges):
    """The run with other edges between its nodes."""
    graph = Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2).T, run.dataset.num_nodes)
    return replace(run, dataset=replace(run.dataset, graph=graph))


def test_a_sound_graph_has_only_its_homophily_reported(karate_run):
    found = about(data_findings(karate_run))
    assert set(found) == {"homophily"}
    assert "β = 0.89: neighbours are mostly of one class" in found["homophily"].text


def test_isolated_nodes_and_parts_are_counted(karate_run):
    found = about(data_findings(on_graph(karate_run, [(0, 1), (2, 3), (4, 5)])))
    assert found["isolated nodes"].text.startswith("28 nodes have no edge (82.4%)")
    assert found["isolated nodes"].level == "warning"
    assert "3 connected components" in found["components"].text


def test_unlabelled_nodes_and_rare_classes(karate_run):
    y = karate_run.y.copy()
    others = np.flatnonzero(~(karate_run.train_mask | karate_run.val_mask | karate_run.test_mask))
    free = others if len(others) else karate_run.dataset.splits[0].test
    split = replace(karate_run.dataset.splits[0], test=np.setdiff1d(karate_run.dataset.splits[0].test, free))
    y[free] = -1
    train = split.train[y[split.train] == 1]
    split = replace(split, train=np.setdiff1d(split.train, train[3:]))
    changed = replace(karate_run, dataset=replace(karate_run.dataset, y=y, splits=(split,)))
    found = about(data_findings(changed))
    assert found["labels"].text.startswith(f"{len(free)} nodes have no label")
    assert "class 1" in found["rare classes"].text


def test_changes_made_by_fit_are_reported(named):
    found = [finding for finding in data_findings(load_run(named)) if finding.about == "data as read"]
    assert len(found) == 1
    assert "merged" in found[0].text


@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
@pytest.mark.parametrize(("right", "level"), [(True, "good"), (False, "warning")])
def test_scores_are_compared_with_guessing(karate_run, metric, right, level):
    few = karate_run.dataset.splits[0]
    split = replace(few, train=few.test, test=few.train)
    run = replace(karate_run, dataset=replace(karate_run.dataset, metric=metric, splits=(split,)))
    prediction = run.y if right else np.full_like(run.y, np.bincount(run.y).argmax())
    found = about(training_findings(run, {"roc_auc": {"mean": 0.9}}, certain(prediction)))
    assert found["learned something"].level == level
    assert ("not significantly better" in found["learned something"].text) == (not right)
    assert ("90.0%" in found["learned something"].text) == (metric == "roc_auc")
    assert set(found) == {"learned something"}


def test_unfinished_restarted_and_cut_short_runs_are_reported(karate_run):
    result = {"finished": False, "runs": [0, 1], "restarts": 2, "rows": [{"best_epoch": karate_run.config.epochs}]}
    found = about(training_findings(karate_run, result, certain(karate_run.y)))
    assert found["unfinished"].text.startswith("1 of 2 runs")
    assert found["restarts"].text.startswith("2 attempts were")
    assert found["epochs"].text.startswith("1 run still improved")


def test_an_ensemble_is_reported_with_whose_attention_is_shown(karate_run):
    ensemble = replace(karate_run, config=karate_run.config.replace(members=3))
    found = about(training_findings(ensemble, {}, certain(ensemble.y)))
    assert found["ensemble"].text.startswith("The average of 3 networks;")
    mixed = replace(ensemble, partners=(replace(karate_run, name="sage"),))
    found = about(training_findings(mixed, {}, certain(mixed.y)))
    assert found["ensemble"].text.startswith(f"The average of 4 networks ({karate_run.name} + sage);")


def test_links_to_similar_nodes_are_reported(karate_run):
    joined = replace(karate_run, config=karate_run.config.replace(similar=3))
    found = about(training_findings(joined, {}, certain(joined.y)))
    assert "linked to the 3 most similar" in found["similar nodes"].text
    assert "similar nodes" not in about(training_findings(karate_run, {}, certain(karate_run.y)))
    x = np.random.default_rng(0).random((34, 3), dtype=np.float32)
    joined = replace(joined, dataset=replace(joined.dataset, x=x))
    assert "isolated nodes" not in about(data_findings(on_graph(joined, [(0, 1), (2, 3)])))


def test_overfitting_is_reported(karate_run):
    prediction = np.where(karate_run.test_mask, 1 - karate_run.y, karate_run.y)
    found = about(training_findings(karate_run, {}, certain(prediction)))
    assert found["overfitting"].text.startswith("Training accuracy is 100.0%, test accuracy 0.0%")


def of_heads(attention=(), filters=(), result=None, layer_name="layer"):
    held = HeadResponses(FREQUENCY, FLAT, list(attention), list(filters))
    return about(attention_findings(result or {}, held, layer_name))


def test_flat_heads_are_named():
    responses = [np.stack([FREQUENCY, np.zeros_like(FREQUENCY)], axis=1), FREQUENCY[:, None]]
    found = of_heads(responses)
    assert "head 2 of layer 1." in found["flat heads"].text
    assert "heads" not in found
    assert set(of_heads(responses[1:])) == {"heads"}
    filters = of_heads(responses[1:], responses, layer_name="block")
    assert "filter head 2 of block 1." in filters["flat filter heads"].text
    assert "flat heads" not in filters


def test_a_model_without_attention_says_so():
    assert "under filter responses" in of_heads(filters=[FREQUENCY[:, None]])["no attention"].text
    only_means = of_heads()
    assert set(only_means) == {"no attention"}
    assert "mean over neighbours" in only_means["no attention"].text


@pytest.mark.parametrize(
    ("share", "bound", "level", "text"),
    [
        (1.0, 0.0, "good", "100.0% of the attention rows are proven equal to those computed from all pairs."),
        (0.5, 0.01, "good", "off by at most 0.01."),
        (0.5, 1.0, "warning", "off by at most 1."),
    ],
)
def test_the_certificate_is_reported(share, bound, level, text):
    result = {"certified_share": share, "max_bound": bound}
    found = of_heads(result=result)["certificate"]
    assert (found.level, text in found.text) == (level, True)


def test_a_fallback_is_reported():
    found = of_heads(result={"fallback": {"heads": 1}})
    assert "did not converge for 1 head;" in found["fallback"].text
