import dataclasses
from itertools import count

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score, roc_auc_score
from tests.training.tiny import Constant, Diverging, Linear, quick, tiny_dataset

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.nn.registry import make_config, model_spec
from asgat.training.metrics import majority_share
from asgat.training.runner import make_inputs
from asgat.training.trainer import Epoch, evaluate, member_seed, train, train_run


def run(build, dataset=None, config=None, seed=0, y=None, split=None, progress=None):
    dataset = dataset or tiny_dataset()
    y = torch.from_numpy(dataset.y if y is None else y)
    split = split or dataset.splits[0]
    inputs = (torch.from_numpy(dataset.x),)
    return train(build, inputs, y, split, config or quick(), seed, dataset.metric, progress)


def in_turn(*builds):
    """A build function that makes another model at every attempt."""
    remaining = iter(builds)
    return lambda: next(remaining)()


def same_outcome(a, b):
    """Everything but the time, to the last bit."""
    figures_a, figures_b = ({**vars(r), "seconds": 0, "state": 0} for r in (a, b))
    same_state = a.state.keys() == b.state.keys() and all(torch.equal(a.state[k], b.state[k]) for k in a.state)
    return figures_a == figures_b and same_state


# -- the same seed, the same result -----------------------------------------------------------------


def test_same_seed_same_result_to_the_last_bit():
    first = run(Linear, seed=3)
    torch.manual_seed(99)  # what was drawn before has no part in it
    torch.randn(7)
    assert same_outcome(first, run(Linear, seed=3))


def test_another_seed_is_another_result():
    first, second = run(Linear, seed=3), run(Linear, seed=4)
    assert (first.seed, second.seed) == (3, 4)
    assert not torch.equal(first.state["linear.weight"], second.state["linear.weight"])
    assert first.history[0].train_loss != second.history[0].train_loss


@pytest.mark.parametrize("name", ["asgat-cheb", "gcn"])
def test_registered_models_repeat_themselves(name):
    karate = load_dataset("karate")
    spec = model_spec(name)
    config = spec.config(epochs=4, hidden=4, max_restarts=0)
    inputs = make_inputs(karate, name, config, torch.device("cpu"))
    y = torch.from_numpy(karate.y)
    results = [
        train(lambda: spec.build(config, karate.num_features, 2), inputs, y, karate.splits[0], config, seed)
        for seed in (5, 5, 6)
    ]
    assert same_outcome(results[0], results[1])
    assert not same_outcome(results[0], dataclasses.replace(results[2], seed=5))


# -- what is reported -------------------------------------------------------------------------------


def test_the_kept_weights_give_the_reported_figures():
    dataset = tiny_dataset()
    result = run(Linear, dataset)
    model = Linear()
    model.load_state_dict(result.state)
    with torch.no_grad():
        logits = model.eval()(torch.from_numpy(dataset.x))
    split, y = dataset.splits[0], torch.from_numpy(dataset.y)
    guess = logits.argmax(-1).numpy()
    assert result.val_loss == F.cross_entropy(logits[split.val], y[split.val]).item()
    assert result.val_score == np.mean(guess[split.val] == dataset.y[split.val])
    assert result.micro_f1 == np.mean(guess[split.test] == dataset.y[split.test])
    assert result.macro_f1 == f1_score(dataset.y[split.test], guess[split.test], average="macro")
    assert result.roc_auc is None


def test_the_kept_epoch_is_early_stoppings():
    result = run(Linear, config=quick(lr=0.3, epochs=60, patience=60))
    best = [
        e.epoch
        for i, e in enumerate(result.history)
        if all(e.val_loss <= o.val_loss and e.val_score >= o.val_score for o in result.history[:i])
    ]
    assert result.best_epoch == best[-1] < result.epochs  # it overfits, so the last epoch is not the best
    kept = result.history[result.best_epoch - 1]
    assert (kept.epoch, kept.val_loss, kept.val_score) == (
        result.best_epoch,
        result.val_loss,
        result.val_score,
    )


def test_the_first_loss_is_the_cross_entropy_of_the_training_nodes():
    dataset = tiny_dataset()
    result = run(lambda: Linear(dropout=0.0), dataset, seed=8)
    torch.manual_seed(8)
    model, nodes = Linear(dropout=0.0), dataset.splits[0].train
    expected = F.cross_entropy(model(torch.from_numpy(dataset.x))[nodes], torch.from_numpy(dataset.y[nodes]))
    assert result.history[0].train_loss == pytest.approx(expected.item(), rel=1e-6)


def test_learning_lowers_the_loss_and_beats_the_majority():
    dataset = tiny_dataset(noise=0.2)
    result = run(Linear, dataset, quick(lr=0.1, epochs=60))
    split = dataset.splits[0]
    assert result.history[-1].train_loss < 0.5 * result.history[0].train_loss
    assert result.micro_f1 > majority_share(dataset.y[split.train], dataset.y[split.test])


def test_weights_come_back_detached_and_are_those_of_the_kept_epoch_only():
    result = run(Linear)
    assert all(not value.requires_grad and value.device.type == "cpu" for value in result.state.values())


# -- what has no influence --------------------------------------------------------------------------


def test_labels_of_test_nodes_have_no_influence():
    dataset = tiny_dataset()
    test = dataset.splits[0].test
    swapped = dataset.y.copy()
    swapped[test] = 1 - swapped[test]
    honest, blind = run(Linear, dataset), run(Linear, dataset, y=swapped)
    assert honest.history == blind.history
    assert all(torch.equal(honest.state[k], blind.state[k]) for k in honest.state)
    assert (honest.best_epoch, honest.restarts) == (blind.best_epoch, blind.restarts)
    assert honest.micro_f1 == pytest.approx(1 - blind.micro_f1)


def test_test_labels_do_not_decide_restarts_either():
    dataset = tiny_dataset()
    split = dataset.splits[0]
    all_wrong = dataset.y.copy()
    all_wrong[split.test] = 1  # the constant guess is 0
    for y in (dataset.y, all_wrong):
        assert run(Constant, dataset, quick(epochs=2, max_restarts=2), y=y).restarts == 2


def test_nor_which_attempt_counts():
    """The second attempt does better on validation, the first on every test node: the second counts."""
    dataset = tiny_dataset()
    tempting = dataset.y.copy()
    tempting[dataset.splits[0].test] = 1
    attempts = in_turn(lambda: Constant((-1.0, 1.0)), Constant)
    result = run(attempts, dataset, quick(epochs=2, max_restarts=1), y=tempting)
    assert torch.equal(result.state["logits"], torch.tensor([1.0, -1.0]))
    assert result.micro_f1 == 0.0


def test_labels_of_validation_nodes_choose_but_do_not_teach():
    dataset = tiny_dataset()
    val = dataset.splits[0].val
    swapped = dataset.y.copy()
    swapped[val] = 1 - swapped[val]
    honest, misled = run(Linear, dataset), run(Linear, dataset, y=swapped)
    assert [e.train_loss for e in honest.history] == [e.train_loss for e in misled.history]
    assert honest.history[0].val_loss != misled.history[0].val_loss


def test_nodes_outside_the_split_need_no_label():
    dataset = tiny_dataset()
    split = dataset.splits[0]
    smaller = Split(split.train[2:], split.val, split.test)
    unlabelled = dataset.y.copy()
    unlabelled[split.train[:2]] = -1
    assert same_outcome(run(Linear, dataset, split=smaller), run(Linear, dataset, split=smaller, y=unlabelled))


# -- when it stops ----------------------------------------------------------------------------------


def test_stops_after_patience_epochs_without_improvement():
    result = run(Constant, config=quick(epochs=50, patience=7))
    assert result.epochs == len(result.history) == 1 + 7
    assert result.best_epoch == 8  # the last of equals counts


def test_never_more_than_the_epochs_allowed():
    result = run(Linear, config=quick(epochs=3))
    assert [e.epoch for e in result.history] == [1, 2, 3]


def test_progress_is_told_every_epoch_as_it_happens():
    told: list[Epoch] = []
    result = run(Linear, progress=told.append)
    assert told == result.history
    assert len(told) == result.epochs == 30
    told.clear()
    result = run(Constant, config=quick(epochs=2, max_restarts=2), progress=told.append)
    assert [(e.attempt, e.epoch) for e in told] == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert told == result.history


# -- new starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_a_collapsed_model_is_started_anew_as_often_as_allowed(allowed):
    seeds = []

    def build():
        seeds.append(torch.initial_seed())
        return Constant()

    result = run(build, config=quick(epochs=2, max_restarts=allowed))
    assert result.restarts == allowed
    assert len(set(seeds)) == len(seeds) == allowed + 1
    assert result.epochs == 2 * (allowed + 1)
    assert {e.attempt for e in result.history} == set(range(allowed + 1))


def test_better_than_the_majority_is_not_started_anew():
    result = run(Linear, tiny_dataset(noise=0.2), quick(lr=0.1, max_restarts=3))
    assert result.restarts == 0
    assert {e.attempt for e in result.history} == {0}


def test_stops_restarting_once_it_learned():
    result = run(in_turn(Constant, Constant, Linear), tiny_dataset(noise=0.2), quick(lr=0.1, epochs=40, max_restarts=9))
    assert result.restarts == 2
    assert set(result.state) == {"linear.weight", "linear.bias"}
    assert result.val_score > 0.9


def test_the_attempt_with_the_best_validation_score_counts():
    dataset = tiny_dataset()

    def minority():
        return Constant((-1.0, 1.0))

    result = run(in_turn(minority, Constant, minority), dataset, quick(epochs=2, max_restarts=2))
    assert torch.equal(result.state["logits"], torch.tensor([1.0, -1.0]))
    split = dataset.splits[0]
    assert result.val_score == majority_share(dataset.y[split.train], dataset.y[split.val])
    assert result.micro_f1 == majority_share(dataset.y[split.train], dataset.y[split.test])
    assert result.restarts == 2


# -- divergence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [1, 4])
def test_divergence_is_an_error_that_names_epoch_and_learning_rate(epoch):
    built = count()

    def build():
        next(built)
        return Diverging(epoch)

    with pytest.raises(AsgatError, match=rf"epoch {epoch}: the loss is nan.*lr is 0\.125"):
        run(build, config=quick(lr=0.125, max_restarts=2))
    assert next(built) == 3


def test_a_model_that_diverges_once_recovers():
    result = run(in_turn(lambda: Diverging(3), Linear), tiny_dataset(noise=0.2), quick(lr=0.1, max_restarts=3))
    assert result.restarts == 1
    assert result.val_score > 0.9
    assert [e.epoch for e in result.history if e.attempt == 0] == [1, 2]
    assert np.isfinite([[e.train_loss, e.val_loss] for e in result.history]).all()


def test_divergence_after_a_collapse_leaves_the_collapsed_attempt():
    result = run(in_turn(Constant, lambda: Diverging(1)), config=quick(epochs=2, max_restarts=1))
    assert result.restarts == 1
    assert "logits" in result.state


def test_divergence_seen_on_validation_alone():
    class BadOutside(Linear):
        def forward(self, x):
            return super().forward(x) * (1.0 if self.training else float("inf"))

    with pytest.raises(AsgatError, match=r"epoch 1.* on validation (nan|inf)"):
        run(BadOutside, config=quick())


def test_huge_features_are_told_as_divergence():
    dataset = tiny_dataset()
    huge = dataclasses.replace(dataset, x=dataset.x * np.float32(1e38))
    with pytest.raises(AsgatError, match="diverged"):
        run(Linear, huge)


# -- ROC-AUC ----------------------------------------------------------------------------------------


def test_roc_auc_is_the_validation_score_and_is_reported_for_test():
    dataset = tiny_dataset(metric="roc_auc")
    result = run(Linear, dataset)
    model = Linear()
    model.load_state_dict(result.state)
    with torch.no_grad():
        probability = model.eval()(torch.from_numpy(dataset.x)).double().softmax(-1)[:, 1].numpy()
    split = dataset.splits[0]
    assert result.val_score == pytest.approx(roc_auc_score(dataset.y[split.val], probability[split.val]))
    assert result.roc_auc == pytest.approx(roc_auc_score(dataset.y[split.test], probability[split.test]))
    assert result.val_score != np.mean((probability > 0.5)[split.val] == dataset.y[split.val])


def test_roc_auc_of_a_half_is_a_collapse():
    result = run(Constant, tiny_dataset(metric="roc_auc"), quick(epochs=2, max_restarts=2))
    assert (result.val_score, result.roc_auc, result.restarts) == (0.5, 0.5, 2)


# -- splits nothing can be chosen on ----------------------------------------------------------------


def test_no_validation_nodes_is_an_error():
    split = tiny_dataset().splits[0]
    with pytest.raises(AsgatError, match="no validation nodes"):
        run(Linear, split=Split(split.train, split.val[:0], split.test))


def test_roc_auc_needs_both_classes_to_choose_by():
    dataset = tiny_dataset(metric="roc_auc")
    split = dataset.splits[0]
    with pytest.raises(AsgatError, match="one class"):
        run(Linear, dataset, split=Split(split.train, split.val[dataset.y[split.val] == 0], split.test))


def test_settings_of_the_model_reach_the_optimiser():
    still = run(lambda: Linear(dropout=0.0), config=quick(lr=1e-12, epochs=3))
    moving = run(lambda: Linear(dropout=0.0), config=quick(lr=0.1, epochs=3))
    assert still.history[2].train_loss == pytest.approx(still.history[0].train_loss, abs=1e-6)
    assert moving.history[2].train_loss < moving.history[0].train_loss - 1e-3
    decayed = run(lambda: Linear(dropout=0.0), config=quick(lr=0.1, weight_decay=10.0, epochs=30))
    free = run(lambda: Linear(dropout=0.0), config=quick(lr=0.1, epochs=30))
    assert decayed.state["linear.weight"].norm() < 0.5 * free.state["linear.weight"].norm()


def test_asgat_settings_are_training_settings_too():
    assert run(Linear, config=ASGATConfig(epochs=2, max_restarts=0)).epochs == 2


def test_members_of_a_committee_are_trained_as_if_they_were_alone():
    data = tiny_dataset()
    config = make_config("asgat-plus", members=3, hidden=4, heads=2, k=3, order=4, epochs=12, max_restarts=0)
    inputs, y = make_inputs(data, "asgat-plus", config, torch.device("cpu")), torch.from_numpy(data.y)

    def build(own):
        return model_spec("asgat-plus").make(own, data.num_features, data.num_classes, data.num_nodes)

    whole, one = train_run(build, inputs, y, data.splits[0], config, 5), config.replace(members=1)
    apart = [train(lambda: build(one), inputs, y, data.splits[0], one, member_seed(5, i)) for i in range(3)]
    assert len({one.val_loss for one in apart}) == 3
    for i, alone in enumerate(apart):
        own = {n.removeprefix(f"members.{i}."): v for n, v in whole.state.items() if n.startswith(f"members.{i}.")}
        assert own.keys() == alone.state.keys()
        assert all(torch.equal(own[name], value) for name, value in alone.state.items())
    assert whole.epochs == len(whole.history) == sum(one.epochs for one in apart)
    assert [epoch.attempt for epoch in whole.history] == [i for i, one in enumerate(apart) for _ in one.history]
    net = build(config)
    net.load_state_dict(whole.state)
    assert evaluate(net, inputs, y, data.splits[0], "micro_f1") == {
        key: getattr(whole, key) for key in ("val_loss", "val_score", "micro_f1", "macro_f1", "roc_auc")
    }
