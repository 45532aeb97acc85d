"""The content of a report, compared with plain counting."""

import copy
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests import dense
from tests.report.conftest import made_board, train

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.estimator.trained_run import load_run
from asgat.explain.head_responses import HeadResponses
from asgat.graph import Graph
from asgat.leaderboard.board import board_content
from asgat.leaderboard.standings import AVERAGE, CUT
from asgat.report import content as module
from asgat.report.content import (
    accuracy_by_homophily,
    attention_distance,
    confusion,
    filter_curves,
    report_content,
    training_curves,
)
from asgat.spectral import ChebyshevOperator


@pytest.fixture(scope="module")
def held(karate_run):
    return report_content(karate_run)


def test_all_parts_are_present_and_are_json(held):
    json.dumps(held, allow_nan=False)
    assert held["title"] == "asgat-cheb on karate"
    assert {"summary", "health", "curves", "filters", "homophily", "confusion", "distance", "explorer"} <= set(held)
    assert all(tile["value"] and tile["label"] for tile in held["summary"])
    levels = [finding["level"] for finding in held["health"]]
    assert levels == sorted(levels, key=["warning", "note", "good"].index)


def test_the_score_shown_is_that_of_the_kept_model(karate_run, held):
    result = json.loads((karate_run.path / "result.json").read_text())
    row = max(result["rows"], key=lambda row: row["val_score"])
    (tile,) = [tile for tile in held["summary"] if tile["label"] == "model shown here"]
    assert tile["value"] == f"{100 * row['micro_f1']:.1f} %"
    assert held["kept_run"] == row["run"]
    hits = sum(held["confusion"][i][i] for i in range(2))
    assert hits / sum(map(sum, held["confusion"])) == pytest.approx(row["micro_f1"])


def test_filters_have_a_curve_and_a_name_per_head(held):
    assert [len(layer) for layer in held["filters"]["layers"]] == [3, 1]
    for layer in held["filters"]["layers"]:
        for head in layer:
            assert len(head["response"]) == len(held["filters"]["frequency"]) == len(held["filters"]["density"])
            assert head["character"].startswith("band-pass") or head["character"] in {
                "low-pass",
                "high-pass",
                "both ends",
                "mixed",
                "flat",
            }


def test_curves_are_those_of_the_metrics_file(karate_run, held):
    lines = [json.loads(line) for line in (karate_run.path / "metrics.jsonl").read_text().splitlines()]
    assert [curve["run"] for curve in held["curves"]] == [0, 1]
    for curve in held["curves"]:
        mine = [line for line in lines if line["run"] == curve["run"]]
        assert curve["val_loss"] == [line["val_loss"] for line in mine]
        assert curve["epoch"] == [line["epoch"] for line in mine]


def write_metrics(run, path, lines):
    from dataclasses import replace

    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return replace(run, path=path)


def line(epoch, attempt=0, loss=1.0):
    return {"run": 0, "attempt": attempt, "epoch": epoch, "train_loss": loss, "val_loss": loss, "val_score": 0.5}


def test_long_curves_are_thinned_and_keep_the_kept_epoch(karate_run, tmp_path):
    run = write_metrics(karate_run, tmp_path, [line(epoch) for epoch in range(1, 5001)])
    (curve,) = training_curves(run, {"rows": [{"run": 0, "best_epoch": 4321, "val_loss": 1.0}]})
    assert 4321 in curve["epoch"]
    assert curve["epoch"][0] == 1
    assert curve["epoch"][-1] == 5000
    assert 200 < len(curve["epoch"]) <= 302


def test_of_several_attempts_the_kept_one_is_drawn(karate_run, tmp_path):
    lines = [line(e, 0, 2.0) for e in (1, 2, 3)] + [line(e, 1, 1.0) for e in (1, 2, 3)]
    run = write_metrics(karate_run, tmp_path, lines)
    row = {"run": 0, "best_epoch": 2, "restarts": 1}
    for loss in (1.0, 2.0):
        (curve,) = training_curves(run, {"rows": [{**row, "val_loss": loss}]})
        assert curve["val_loss"] == [loss] * 3


def test_of_an_ensemble_the_first_networks_curve_is_drawn(karate_run, tmp_path):
    from dataclasses import replace

    lines = [line(e, 0, 2.0) for e in (1, 2, 3)] + [line(e, 1, 1.0) for e in (1, 2, 3)]
    run = write_metrics(replace(karate_run, config=karate_run.config.replace(members=2)), tmp_path, lines)
    (curve,) = training_curves(run, {"rows": [{"run": 0, "best_epoch": 2, "val_loss": 0.9}]})
    assert curve["val_loss"] == [2.0] * 3


def test_unreadable_metrics_are_an_error(karate_run, tmp_path):
    run = write_metrics(karate_run, tmp_path, [{"run": 0}])
    with pytest.raises(AsgatError, match="cannot be read as metrics"):
        training_curves(run, {"rows": [{"run": 0, "best_epoch": 1, "val_loss": 1.0}]})


@pytest.mark.parametrize("damage", [{"rows": "text"}, {"rows": [{}]}, {"micro_f1": 0.5}, {"fallback": {}}, {"runs": 2}])
def test_a_damaged_result_is_an_error(karate_run, tmp_path, damage):
    from dataclasses import replace

    result = json.loads((karate_run.path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**result, **damage}))
    with pytest.raises(AsgatError, match=r"result\.json is damaged"):
        report_content(replace(karate_run, path=tmp_path))


def test_accuracy_by_homophily_is_plain_counting(karate_run):
    prediction = np.random.default_rng(0).integers(0, 2, 34)
    bins = accuracy_by_homophily(karate_run, prediction)
    test, matrix = karate_run.test_mask, karate_run.graph.adjacency.toarray() > 0
    same = (matrix & (karate_run.y[:, None] == karate_run.y)).sum(axis=1)
    assert sum(entry["nodes"] for entry in bins) == test.sum()
    for place, entry in enumerate(bins):
        inside = test & (np.minimum(5 * same // matrix.sum(axis=1), 4) == place)
        assert entry["nodes"] == inside.sum()
        if entry["nodes"]:
            assert entry["accuracy"] == pytest.approx((prediction == karate_run.y)[inside].mean())
            assert 0 <= entry["low"] <= entry["accuracy"] <= entry["high"] <= 1


def test_confusion_is_plain_counting(karate_run):
    prediction = np.random.default_rng(1).integers(0, 2, 34)
    counts = confusion(karate_run, prediction)
    for truth in range(2):
        for answer in range(2):
            both = karate_run.test_mask & (karate_run.y == truth) & (prediction == answer)
            assert counts[truth][answer] == both.sum()


def test_attention_distance_is_that_of_the_dense_weights(karate_run):
    operator = karate_run.inputs[1]
    held = attention_distance(karate_run.model, operator, karate_run.graph)
    distance = dense.hops(karate_run.graph)
    with torch.no_grad():
        _, attentions = karate_run.model(*karate_run.inputs, return_attention_weights=True)
    for shares, attention in zip(held["layers"], attentions, strict=True):
        weights = attention.to_dense().numpy()
        for head, share in enumerate(shares):
            by_hop = [weights[head][distance == hop].sum() / 34 for hop in range(5)]
            assert share[:5] == pytest.approx(by_hop, abs=1e-3)
            assert share[5] == pytest.approx(weights[head][distance >= 5].sum() / 34, abs=1e-3)
            assert sum(share) == pytest.approx(1.0, abs=1e-3)
    assert (held["nodes"], held["total"]) == (34, 34)


def test_attention_distance_of_a_large_graph_uses_a_sample(karate_run, monkeypatch):
    monkeypatch.setattr(module, "DISTANCE_NODES", 10)
    held = attention_distance(karate_run.model, karate_run.inputs[1], karate_run.graph)
    assert (held["nodes"], held["total"]) == (10, 34)
    assert all(sum(share) == pytest.approx(1.0, abs=1e-3) for layer in held["layers"] for share in layer)


def test_a_model_without_attention_has_no_filters_and_no_distance(gcn):
    held = report_content(load_run(gcn))
    assert held["filters"] is None
    assert held["distance"] is None
    assert held["confusion"]


def test_of_an_ensemble_the_first_network_is_shown(tmp_path):
    run = load_run(train(tmp_path, load_dataset("karate"), "asgat-plus", heads=2, k=5, order=6, members=3))
    held = report_content(run)
    json.dumps(held, allow_nan=False)
    assert [len(layer) for layer in held["filters"]["layers"]] == [2, 1]
    assert [curve["epoch"] for curve in held["curves"]] == [list(range(1, 7))] * 2
    row = max(json.loads((tmp_path / "result.json").read_text())["rows"], key=lambda row: row["val_score"])
    assert row["epochs"] == 18
    prediction = run.logits().argmax(-1).numpy()
    hits = prediction[run.test_mask] == run.y[run.test_mask]
    assert hits.mean() == pytest.approx(row["micro_f1"])


def test_attention_distance_in_a_directed_graph_has_a_row_for_each_side(karate_run):
    directed = Graph.from_edges(karate_run.graph.edges_once()[0], 34, directed=True)
    operator = ChebyshevOperator(directed.double_cover, order=6)
    held = attention_distance(karate_run.model, operator, directed)
    distance = np.repeat(np.repeat(dense.hops(karate_run.graph), 2, axis=0), 2, axis=1)
    for conv, shares in zip(karate_run.model.convs, held["layers"], strict=True):
        with torch.no_grad():
            weights = conv.attention(operator).to_dense().numpy()
        assert len(shares) == 2 * conv.heads
        for row, found in enumerate(shares):
            side = weights[row // 2, row % 2 :: 2]
            expected = [side[distance[row % 2 :: 2] == hops].sum() / 34 for hops in range(5)]
            np.testing.assert_allclose(found[:5], expected, atol=1e-3)
    assert (held["nodes"], held["total"]) == (34, 34)


def test_a_leaderboard_is_in_the_report_as_it_is_printed(gcn, tmp_path):
    shutil.copytree(gcn, tmp_path / "run")
    board = made_board(members=2, cut=True)
    (tmp_path / "run" / "leaderboard.json").write_bytes(board_content({}, 1.0, board))
    held = report_content(load_run(tmp_path / "run"))
    assert held["title"] == "logistic regression on karate"
    table = held["leaderboard"]
    assert (table["headings"], table["cells"]) == board.cells()
    assert table["cells"][table["chosen"]][0] == "logistic regression"
    assert table["sentences"] == [board.choice, *board.sentences]
    assert table["notes"] == ["gcn: diverged", CUT]
    assert table["caption"].endswith("The row has the scores of one of its 2 networks.")
    assert any(step["text"] == CUT for step in held["next_steps"])
    (tmp_path / "run" / "leaderboard.json").write_bytes(board_content({}, 1.0))  # one that is not finished
    assert report_content(load_run(tmp_path / "run"))["leaderboard"] is None


def test_the_average_of_several_models_is_the_first_row(gcn, tmp_path):
    shutil.copytree(gcn, tmp_path / "run")
    board = made_board(members=2)
    board = replace(board, chosen=replace(board.chosen, name=AVERAGE), averaged=["mlp", "gcn"])
    (tmp_path / "run" / "leaderboard.json").write_bytes(board_content({}, 1.0, board))
    table = report_content(load_run(tmp_path / "run"))["leaderboard"]
    assert (table["chosen"], table["cells"][0][0]) == (0, AVERAGE)
    assert table["caption"].startswith("The marked row is the model shown here")


def test_filter_heads_are_drawn_with_a_positive_peak():
    frequency = np.linspace(0.0, 2.0, 201)
    responses = [(-4 * np.abs(frequency - 1.0))[:, None]]
    curves = filter_curves(HeadResponses(frequency, np.ones(201), [], responses))
    assert curves is not None
    (head,) = curves["filter_layers"][0]
    assert head["character"] == "both ends"
    assert max(head["response"]) == 4.0


def test_damaged_weights_are_refused(karate_run):
    with torch.no_grad():
        model = copy.deepcopy(karate_run.model)
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(AsgatError, match="NaN"):
        report_content(replace(karate_run, model=model))
