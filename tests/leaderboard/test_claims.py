"""Claims on noise are rare, and those of a real effect frequent: simulated with models trained on small graphs.

Models are logistic regressions on the features alone, and on them with the means of the neighbours; validation nodes
choose the regularisation, and which of both is compared with guessing.
"""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from asgat.data.dataset import METRICS
from asgat.data.splits import stratified_splits
from asgat.leaderboard import claims
from asgat.leaderboard.claims import is_better
from asgat.leaderboard.intervals import NodePredictions, mean_scores
from asgat.training.metrics import all_scores

BALANCED, SKEWED, RARE = (0.5, 0.5), (0.6, 0.3, 0.1), (0.9, 0.1)
SHARES = {"micro_f1": (BALANCED, SKEWED), "macro_f1": (BALANCED, SKEWED), "roc_auc": (RARE, (0.95, 0.05))}
COLUMNS = 6


def gain_over(metric, one, other):
    found = claims.gain_over(metric, one, other)
    assert found is not None
    return found


def gain_over_guessing(metric, tested):
    found = claims.gain_over_guessing(metric, tested)
    assert found is not None
    return found


def draw_classes(rng, nodes, shares):
    counts = [round(share * nodes) for share in shares[1:]]
    return rng.permutation(np.repeat(np.arange(len(shares)), [nodes - sum(counts), *counts]))


def draw_features(rng, y, signal):
    """Normal columns, of which every class has one that is higher by ``signal``."""
    return rng.normal(size=(len(y), COLUMNS)) + signal * np.eye(COLUMNS)[y]


def with_neighbours(rng, y, x, homophilous):
    """Features and their means over about eight neighbours: any, or only nodes of the same class."""
    a, b = rng.integers(0, len(y), (2, 16 * len(y)))
    kept = np.flatnonzero((y[a] == y[b]) | (not homophilous))[: 4 * len(y)]
    adjacency = np.zeros((len(y), len(y)))
    adjacency[a[kept], b[kept]] = adjacency[b[kept], a[kept]] = 1
    return np.hstack([x, adjacency @ x / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)])


def train(metric, x, y, splits):
    """A model of every split, and their mean validation score."""
    sign, best = -1 if metric == "log_loss" else 1, []
    for split in splits:
        each = [LogisticRegression(C=c, tol=1e-3, max_iter=1000).fit(x[split.train], y[split.train]) for c in (0.01, 1)]
        scores = [all_scores(y[split.val], model.predict_proba(x[split.val]))[metric] for model in each]
        best.append(max(zip([sign * (score or 0.0) for score in scores], each, strict=True), key=lambda pair: pair[0]))
    return np.mean([score for score, _ in best]), [model for _, model in best]


def predict(models, x, y, splits):
    return [NodePredictions.of(s, y, model.predict_proba(x)) for model, s in zip(models, splits, strict=True)]


def simulate(metric, graphs, nodes=None, signal=0.0, homophilous=False, again=False):
    """How often claims are made, and the mean test scores of the row without and of that with the graph.

    Returns the shares of graphs where the chosen row is better than guessing, where the graph helps, and where it does
    not help. The second row is with ``again`` the same model on features drawn again, which is equally good.
    """
    found, scores = [], []
    for seed in range(graphs):
        rng = np.random.default_rng(seed)
        shares = SHARES.get(metric, (BALANCED, SKEWED))[0 if nodes else seed // 6 % 2]
        y = draw_classes(rng, nodes or (120, 160, 240)[seed % 3], shares)
        splits = stratified_splits(y, 1 if nodes else (1, 3)[seed % 2], seed, 0.6, 0.2)
        x = draw_features(rng, y, signal)
        other = draw_features(rng, y, signal) if again else with_neighbours(rng, y, x, homophilous)
        val, models = train(metric, x, y, splits)
        other_val, other_models = (val, models) if again else train(metric, other, y, splits)
        alone, graph = predict(models, x, y, splits), predict(other_models, other, y, splits)
        better = is_better(gain_over_guessing(metric, graph if other_val > val else alone))
        gain = gain_over(metric, graph, alone)
        found.append((better, gain[0] > 0, gain[1] < 0))
        scores.append([mean_scores(one)[metric] for one in (alone, graph)])
    return np.mean(found, axis=0), np.mean(scores, axis=0)


def given(truth, prediction, certainty=0.8):
    """Predictions of two classes, which nodes with known labels have in the shares of the truth."""
    probability = np.where(np.eye(2)[prediction] > 0, certainty, 1 - certainty)
    return [NodePredictions(np.arange(len(truth)), truth, probability, np.bincount(truth, minlength=2) / len(truth))]


def test_a_gain_has_a_sign_and_is_that_of_the_same_nodes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    right, wrong = (given(truth, np.where(rng.random(200) < share, truth, 1 - truth)) for share in (0.9, 0.6))
    for metric in METRICS:
        low, high = gain_over(metric, right, wrong)
        assert 0 < low < high
        assert gain_over(metric, wrong, right) == pytest.approx((-high, -low))
        assert gain_over(metric, right, right) == (0.0, 0.0)
        assert is_better(gain_over_guessing(metric, right))
        assert gain_over_guessing(metric, given(truth, 1 - truth))[1] < 0


def test_what_was_learned_must_also_be_more_than_the_most_frequent_class_knows():
    truth = np.repeat([0, 1], [80, 20])
    prediction = np.concatenate([np.repeat([0, 1], [65, 15]), np.repeat([0, 1], [5, 15])])
    learned = given(truth, prediction)  # 80 of 100 nodes are right, as by predicting class 0 alone
    assert is_better(gain_over_guessing("macro_f1", learned))
    low, high = gain_over_guessing("micro_f1", learned)
    assert low < 0 < high


def test_a_varied_guess_is_not_better_than_a_constant_one():
    truth, varied = np.tile([0, 1], 50), np.tile([0, 0, 1, 1], 25)
    low, high = gain_over("macro_f1", given(truth, varied), given(truth, np.zeros(100, int)))
    assert (low, high > 0.1) == (0.0, True)
    low, high = gain_over("macro_f1", given(truth, np.zeros(100, int)), given(truth, varied))
    assert (low < -0.1, high) == (True, 0.0)


def test_without_a_score_there_is_no_gain():
    for metric, truth in (("micro_f1", np.zeros(0, int)), ("roc_auc", np.zeros(10, int))):
        tested = given(truth, truth) if len(truth) else [NodePredictions(truth, truth, np.ones((0, 2)), np.ones(2) / 2)]
        assert claims.gain_over_guessing(metric, tested) is None
        assert claims.gain_over(metric, tested, tested) is None
    assert not is_better(None)


@pytest.mark.parametrize("metric", ["macro_f1", "roc_auc"])
def test_noise_is_seldom_called_a_gain(metric):
    better, helps, hurts = simulate(metric, 120)[0]
    assert better < 0.1, "of few graphs; the slow tests know it better"
    assert helps + hurts < 0.1


@pytest.fixture
def show(capsys):
    """A function that prints how often a claim was made, with the 95 % interval of that, and returns it."""

    def call(metric, what, share, graphs, scores=None):
        low, high = binomtest(round(share * graphs), graphs).proportion_ci(method="exact")
        of = "" if scores is None else f"; test scores {scores[0]:.3f} and, with the graph, {scores[1]:.3f}"
        with capsys.disabled():
            print(f"{metric}, {what}: {share:.1%} of {graphs} graphs ({low:.1%} to {high:.1%}){of}")
        return share

    return call


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("metric", METRICS)
def test_false_claims_are_at_most_five_percent(metric, show):
    better, helps, hurts = simulate(metric, 400)[0]
    assert show(metric, "noise called better than guessing", better, 400) <= 0.05
    assert show(metric, "noise said to help", helps, 400) <= 0.05
    assert show(metric, "noise said not to help", hurts, 400) <= 0.05
    helps = simulate(metric, 400, signal=1.2)[0][1]
    assert show(metric, "a graph of noise said to help informative features", helps, 400) <= 0.05
    _, helps, hurts = simulate(metric, 400, signal=1.2, again=True)[0]
    assert show(metric, "one of two equally good rows said to be better", helps, 400) <= 0.05
    assert show(metric, "the same row said to be worse", hurts, 400) <= 0.05


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("metric", METRICS)
def test_real_effects_are_claimed_on_four_of_five_graphs(metric, show):
    (better, _, _), scores = simulate(metric, 200, nodes=240, signal=1.5)
    assert show(metric, "features better than guessing on 48 test nodes", better, 200, scores) >= 0.8
    (_, helps, _), scores = simulate(metric, 200, nodes=960, signal=1.2, homophilous=True)
    assert show(metric, "the graph helps on 192 test nodes", helps, 200, scores) >= 0.8
