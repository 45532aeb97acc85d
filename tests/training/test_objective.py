import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.utils.class_weight import compute_sample_weight
from tests.training.tiny import Linear, quick, tiny_dataset

from asgat.training.metrics import majority_share
from asgat.training.objective import Objective, balanced_weights, evaluate, score, scores_of

DATA = tiny_dataset()
SPLIT, X, Y = DATA.splits[0], torch.from_numpy(DATA.x), torch.from_numpy(DATA.y)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.fixture
def logits():
    return torch.randn(DATA.num_nodes, 2, generator=torch.Generator().manual_seed(0))


def test_losses_are_cross_entropies_of_their_nodes(logits):
    objective = Objective(Y, SPLIT, quick(), "micro_f1")
    train, val = torch.from_numpy(SPLIT.train), torch.from_numpy(SPLIT.val)
    assert objective.loss(logits).item() == pytest.approx(F.cross_entropy(logits[train], Y[train]).item())
    loss, right = objective.validate(logits)
    assert loss.dtype == right.dtype == torch.float64
    assert loss.item() == pytest.approx(F.cross_entropy(logits[val], Y[val]).item())
    assert right.item() == np.mean(logits[val].argmax(-1).numpy() == DATA.y[SPLIT.val])


def test_a_balanced_loss_is_the_mean_of_the_classes_means_in_training_only(logits):
    objective = Objective(Y, SPLIT, quick(balanced=True), "micro_f1")
    chosen, labels = logits[SPLIT.train], Y[SPLIT.train]
    means = [F.cross_entropy(chosen[labels == c], labels[labels == c]).item() for c in (0, 1)]
    assert objective.loss(logits).item() == pytest.approx(np.mean(means), rel=1e-6)
    assert objective.loss(logits).item() != pytest.approx(F.cross_entropy(chosen, labels).item(), rel=1e-3)
    assert torch.equal(objective.validate(logits)[0], Objective(Y, SPLIT, quick(), "micro_f1").validate(logits)[0])


@pytest.mark.parametrize("balanced", [False, True])
def test_losses_of_batches_average_to_the_loss(logits, balanced):
    objective = Objective(Y, SPLIT, quick(balanced=balanced), "micro_f1")
    total = 0.0
    for chosen in torch.randperm(len(SPLIT.train)).split(7):
        batch = logits[objective.train_nodes[chosen]]
        total += objective.loss(batch, chosen).item() * len(chosen) / len(SPLIT.train)
    assert total == pytest.approx(objective.loss(logits).item(), rel=1e-6)


def test_balanced_weights_are_scikit_learns_and_know_absent_classes():
    labels = torch.tensor([4, 0, 4, 4, 2, 0])
    expected = compute_sample_weight("balanced", labels.numpy()) / len(labels)
    np.testing.assert_allclose(balanced_weights(labels).numpy(), expected, rtol=1e-6)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0.0, 1.0))
def test_a_class_weighs_by_a_power_of_its_size(labels, balance):
    weights = balanced_weights(torch.tensor(labels), balance).numpy()
    count = np.bincount(labels)
    shares = np.array([np.sum(weights[np.equal(labels, c)]) for c in np.flatnonzero(count)])
    expected = count[count > 0] ** (1 - balance)
    np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(balanced_weights(torch.tensor(labels), 0.0).numpy(), 1 / len(labels), rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [3, 49, 59, 97])
def test_a_share_of_right_predictions_equals_the_majority_share_to_the_last_bit(device, count):
    """The restart rule compares them; multiplying by 1 / n instead of dividing by n would differ in the last bit."""
    labels = np.zeros(count, dtype=np.int64)
    constant = torch.tensor([[1.0, 0.0]], device=device).expand(count, 2)
    for wrong in range(count):
        labels[:wrong] = 1
        found = score(constant, torch.from_numpy(labels).to(device), "micro_f1")
        assert found.dtype == torch.float64
        assert found.item() == majority_share(np.zeros(1, dtype=np.int64), labels) == (count - wrong) / count


def test_roc_auc_is_that_of_the_probability_of_class_1():
    logits = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    labels = (torch.arange(30) % 3 == 0).long()
    expected = roc_auc_score(labels.numpy(), logits.double().softmax(-1)[:, 1].numpy())
    assert score(logits, labels, "roc_auc").item() == pytest.approx(expected)
    assert score(-logits, labels, "roc_auc").item() == pytest.approx(1 - expected)
    assert score(logits, labels, "micro_f1").item() != pytest.approx(expected)


def test_a_diverged_model_has_a_score():
    logits = torch.tensor([[0.0, float("nan")], [float("inf"), 0.0], [0.0, 1.0]])
    assert 0 <= score(logits, torch.tensor([0, 1, 1]), "roc_auc").item() <= 1


@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
def test_scores_of_a_model_are_those_of_scikit_learn(metric):
    torch.manual_seed(0)
    model = Linear()
    found = evaluate(model, (X,), Y, SPLIT, metric)
    assert not model.training
    with torch.no_grad():
        logits = model(X)
    assert scores_of(logits, Y, SPLIT, metric) == found
    prediction, margin = logits.argmax(-1).numpy(), (logits[:, 1] - logits[:, 0]).numpy()
    val, test = SPLIT.val, SPLIT.test
    assert found["val_loss"] == pytest.approx(F.cross_entropy(logits[val], Y[val]).item())
    assert found["micro_f1"] == np.mean(prediction[test] == DATA.y[test])
    assert found["macro_f1"] == f1_score(DATA.y[test], prediction[test], average="macro")
    if metric == "roc_auc":
        assert found["val_score"] == pytest.approx(roc_auc_score(DATA.y[val], margin[val]))
        assert found["roc_auc"] == pytest.approx(roc_auc_score(DATA.y[test], margin[test]))
    else:
        assert found["val_score"] == np.mean(prediction[val] == DATA.y[val])
        assert found["roc_auc"] is None


def test_macro_f1_is_scikit_learns():
    rng = np.random.default_rng(0)
    for classes in (2, 5):
        logits, labels = (
            torch.from_numpy(rng.normal(size=(40, classes))),
            torch.from_numpy(rng.integers(0, classes, 40)),
        )
        labels[labels == classes - 1] = 0  # a class that is predicted only
        expected = f1_score(labels.numpy(), logits.argmax(-1).numpy(), average="macro")
        assert score(logits, labels, "macro_f1").item() == pytest.approx(expected)


def test_the_score_of_log_loss_is_higher_where_the_loss_is_lower():
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    assert score(logits, labels, "log_loss").item() == pytest.approx(-F.cross_entropy(logits, labels).item())
    assert score(logits, labels, "log_loss") > score(-logits, labels, "log_loss")
    with pytest.raises(AssertionError, match="accuracy"):
        score(logits, labels, "accuracy")
