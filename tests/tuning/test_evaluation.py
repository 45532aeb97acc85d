import dataclasses

import numpy as np
import pytest
from tests.training.tiny import tiny_dataset

from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.training.inputs import prepare_graph
from asgat.training.runner import run
from asgat.tuning import evaluation as module
from asgat.tuning.evaluation import Evaluation, cheapest

QUICK = {"hidden": 4, "epochs": 12, "max_restarts": 0, "normalize_features": False}


def config(model="asgat-plus", **changes):
    own = {"heads": 2, "k": 3, "order": 4} if model.startswith("asgat") else {}
    return make_config(model, **{**QUICK, **own, **changes})


@pytest.mark.parametrize("model", ["asgat-plus", "asgat-deep", "asgat-heat", "gcn"])
def test_scores_are_the_validation_scores_of_the_ordinary_runner(model):
    data = tiny_dataset()
    configs = [config(model, lr=lr, dropout=d) for lr, d in ((0.05, 0.0), (0.005, 0.3))]
    evaluation = Evaluation(data, model, [0, 2], seed=3)
    for values in configs:
        score = evaluation(values)
        result = run(data, model, values, [0, 2], seed=3)
        rows = [row["val_score"] for row in result["rows"]]
        assert score.mean == pytest.approx(np.mean(rows), abs=1e-6)
        assert score.val == score.mean
        assert score.std == pytest.approx(np.std(rows), abs=1e-6)
        assert score.epochs == pytest.approx(result["epochs"], abs=1)
        assert score.diverged == 0


def test_labels_of_test_nodes_change_nothing():
    data = tiny_dataset(splits=1)
    y = data.y.copy()
    y[data.splits[0].test] = 1 - y[data.splits[0].test]
    other = dataclasses.replace(data, y=y)
    assert not np.array_equal(y, data.y)
    scores = [Evaluation(d, "asgat-cheb", [0, 1], 0)(config("asgat-cheb")) for d in (data, other)]
    assert dataclasses.replace(scores[0], seconds=0) == dataclasses.replace(scores[1], seconds=0)


def test_test_nodes_are_removed_from_every_split():
    data = tiny_dataset()
    evaluation = Evaluation(data, "mlp", [0, 1, 2], 0)
    for (split, _), whole in zip(evaluation.splits, data.splits, strict=True):
        assert np.array_equal(split.train, whole.train)
        assert not set(split.test) & set(whole.test)


@pytest.mark.parametrize("folds", [2, 3])
def test_folds_score_every_training_node_once_and_no_other(folds):
    data = tiny_dataset()
    splits = Evaluation(data, "mlp", [0, 2], 4, folds=folds).splits
    assert [seed for _, seed in splits] == [4] * 2 * folds
    for place, whole in enumerate((data.splits[0], data.splits[2])):
        own = [split for split, _ in splits[place * folds : (place + 1) * folds]]
        assert sorted(np.concatenate([split.test for split in own])) == sorted(whole.train)
        for split in own:
            assert not set(split.train) & set(split.test)
            assert sorted([*split.train, *split.test]) == sorted(whole.train)
            assert np.array_equal(split.val, whole.val)


def test_with_folds_the_score_is_on_the_nodes_left_out():
    data = tiny_dataset(splits=1)
    evaluation = Evaluation(data, "gcn", [0], 3, folds=2)
    score = evaluation(config("gcn"))
    parts = [dataclasses.replace(data, splits=(split,)) for split, _ in evaluation.splits]
    rows = [run(part, "gcn", config("gcn"), [0], seed=3)["rows"][0] for part in parts]
    assert score.mean == pytest.approx(np.mean([row["micro_f1"] for row in rows]), abs=1e-6)
    assert score.macro == pytest.approx(np.mean([row["macro_f1"] for row in rows]), abs=1e-6)
    assert score.val == pytest.approx(np.mean([row["val_score"] for row in rows]), abs=1e-6)
    assert score.mean != pytest.approx(score.val, abs=1e-6)


@pytest.mark.parametrize("folds", [0, 2])
def test_with_macro_the_score_is_the_mean_of_both(folds):
    data = tiny_dataset()
    plain, both = (Evaluation(data, "gcn", [0, 1], 3, folds=folds, macro=m)(config("gcn")) for m in (False, True))
    assert both.mean == pytest.approx((plain.mean + plain.macro) / 2)
    assert both.mean != pytest.approx(plain.mean, abs=1e-6)
    assert (both.macro, both.val) == (plain.macro, plain.val)


@pytest.mark.parametrize("macro", [False, True])
def test_nodes_left_out_and_validation_nodes_count_the_same(macro):
    data = tiny_dataset()
    left, both = (Evaluation(data, "gcn", [0, 1], 3, "cpu", 2, macro, b)(config("gcn")) for b in (False, True))
    assert both.mean == pytest.approx((left.mean + left.val) / 2)
    assert both.mean != pytest.approx(left.mean, abs=1e-6)


def test_another_seed_leaves_other_nodes_out():
    parts = [Evaluation(tiny_dataset(), "mlp", [0], seed, folds=2).splits[0][0].test for seed in (0, 0, 1)]
    assert np.array_equal(parts[0], parts[1])
    assert set(parts[0]) != set(parts[2])


@pytest.mark.parametrize("folds", [-1, 1, 1000])
def test_impossible_folds_are_refused(folds):
    with pytest.raises(AsgatError, match=f"nodes of tiny cannot be divided into {folds} folds; set at least 2"):
        Evaluation(tiny_dataset(), "mlp", [0], 0, folds=folds)


def test_what_is_made_of_the_graph_is_shared(monkeypatch):
    made: list[int] = []

    def prepare(data, model, settings, device):
        made.append(settings.order)
        return prepare_graph(data, model, settings, device)

    monkeypatch.setattr(module, "prepare_graph", prepare)
    evaluation = Evaluation(tiny_dataset(), "asgat-plus", [0], 0)
    first = evaluation.inputs(config())
    same = dict(lr=0.1, hidden=7, heads=3, k=2, elu="none", root=False, mix=True, filter="heat", dropout=0.1)
    assert evaluation.inputs(config(**same)) == first
    wide = evaluation.inputs(config(adjacency=True))
    assert (wide[1], wide[0].shape[1]) == (first[1], 63)
    assert made == [4]
    other = evaluation.inputs(config(order=5))
    assert other[1] is not first[1]
    assert other[0] is first[0]
    assert evaluation.inputs(config(self_loops="add"))[1] is not first[1]
    assert made == [4, 5, 4]
    monkeypatch.setattr(module, "MAX_CACHED", 2)
    for order in (6, 7, 8):
        evaluation.inputs(config(order=order))
    assert evaluation.inputs(config())[1] is not first[1], "the oldest are dropped"


def test_the_table_of_the_deep_model_is_shared_by_channels_with_attention():
    evaluation = Evaluation(tiny_dataset(), "asgat-deep", [0], 0)

    def operator(**changes):
        return evaluation.inputs(config("asgat-deep", **changes))[1]

    with_attention = operator(channels="attention")
    assert operator(channels="attention+filters", input_dropout=True) is with_attention
    without = operator(channels="filters")
    assert without is not with_attention
    assert operator(channels="mean", k=5) is without


def test_a_run_that_diverges_scores_zero():
    data = tiny_dataset()
    huge = dataclasses.replace(data, x=np.where(data.x > 0, 3e38, -3e38).astype(np.float32))
    score = Evaluation(huge, "mlp", [0, 1], 0)(config("mlp", lr=0.1))
    assert (score.mean, score.diverged) == (0.0, 2)


def test_a_missing_split_is_named():
    with pytest.raises(AsgatError, match="tiny has splits 0 to 2; there is no split 5"):
        Evaluation(tiny_dataset(), "mlp", [0, 5], 0)
    seeds = Evaluation(tiny_dataset(splits=1), "mlp", [0, 5], 2).splits
    assert [seed for _, seed in seeds] == [2, 7]


def test_a_metric_without_a_range_is_refused():
    with pytest.raises(AsgatError, match="A search cannot score by log_loss; use micro_f1, macro_f1 or roc_auc"):
        Evaluation(tiny_dataset(metric="log_loss"), "mlp", [0], 0)


def row(trial, value, seconds, std=0.02, **more):
    return {"trial": trial, "value": value, "seconds": seconds, "std": std, **more}


def test_the_fastest_within_half_a_standard_error_of_the_best_is_taken():
    rows = [row(0, 0.800, 9.0), row(1, 0.7951, 3.0), row(2, 0.7949, 1.0), row(3, 0.799, 4.0)]
    assert cheapest(rows, runs=4)["trial"] == 1
    assert cheapest(rows, runs=3)["trial"] == 2, "fewer runs know less"
    rows[0]["std"] = 0.03
    assert cheapest(rows, runs=4)["trial"] == 2, "the spread of the best decides"


def test_without_a_spread_only_equal_scores_count():
    rows = [row(0, 0.8, 9.0), row(1, 0.8, 5.0), row(2, 0.7999, 1.0)]
    del rows[0]["std"]
    assert cheapest(rows, runs=10)["trial"] == 1


def test_of_equal_times_the_better_then_the_earlier_is_taken_and_errors_never():
    rows = [row(0, 0.8, 2.0), row(1, 0.799, 2.0), row(2, 0.8, 2.0), row(3, 0.8, 0.0, error="no memory")]
    assert cheapest(rows, runs=4)["trial"] == 0
    assert cheapest(rows[3:], runs=4)["trial"] == 3, "there is nothing else"
