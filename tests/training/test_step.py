import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.utils.class_weight import compute_sample_weight
from tests.training.tiny import Constant, Linear, quick, tiny_dataset

from asgat.training.step import EagerEpochs, Step, balanced_weights, score
from asgat.training.trainer import train

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def make_step(model, metric="micro_f1", **settings):
    dataset = tiny_dataset(metric=metric)
    y = torch.from_numpy(dataset.y)
    return Step(model, (torch.from_numpy(dataset.x),), y, dataset.splits[0], quick(**settings), metric), dataset


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_an_epoch_is_a_step_of_adam_and_then_an_evaluation(weight_decay):
    torch.manual_seed(0)
    model, reference = Linear(dropout=0.0), Linear(dropout=0.0)
    reference.load_state_dict(model.state_dict())
    step, dataset = make_step(model, lr=0.1, weight_decay=weight_decay)
    x, y, split = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y), dataset.splits[0]
    adam = torch.optim.Adam(reference.parameters(), lr=0.1, weight_decay=weight_decay)
    for _ in range(4):
        figures = step()
        adam.zero_grad()
        loss = F.cross_entropy(reference(x)[split.train], y[split.train])
        loss.backward()
        adam.step()
        with torch.no_grad():
            logits = reference(x)[split.val]
        val_loss = F.cross_entropy(logits, y[split.val]).item()
        right = float(np.mean(logits.argmax(-1).numpy() == dataset.y[split.val]))
        assert figures.tolist() == pytest.approx([loss.item(), val_loss, right], rel=1e-6)
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_a_balanced_loss_is_the_mean_of_the_classes_means():
    """Training alone: early stopping goes by the plain validation loss."""
    torch.manual_seed(0)
    model = Linear(dropout=0.0)
    x, y, split = torch.from_numpy((data := tiny_dataset()).x), torch.from_numpy(data.y), data.splits[0]
    with torch.no_grad():
        logits, labels = model(x)[split.train], y[split.train]
    means = [F.cross_entropy(logits[labels == c], labels[labels == c]).item() for c in (0, 1)]
    step, _ = make_step(model, balanced=True)
    train_loss, val_loss, _ = step().tolist()
    assert train_loss == pytest.approx(np.mean(means), rel=1e-6)
    assert train_loss != pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-3)
    with torch.no_grad():
        assert val_loss == pytest.approx(F.cross_entropy(model(x)[split.val], y[split.val]).item(), rel=1e-6)


def test_balanced_weights_are_scikit_learns_and_know_absent_classes():
    labels = torch.tensor([4, 0, 4, 4, 2, 0])
    expected = compute_sample_weight("balanced", labels.numpy()) / len(labels)
    np.testing.assert_allclose(balanced_weights(labels).numpy(), expected, rtol=1e-6)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0.0, 1.0))
def test_a_class_counts_by_a_power_of_its_size(labels, balance):
    weights = balanced_weights(torch.tensor(labels), balance).numpy()
    count = np.bincount(labels)
    shares = np.array([np.sum(weights[np.equal(labels, c)]) for c in np.flatnonzero(count)])
    expected = count[count > 0] ** (1 - balance)
    np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(balanced_weights(torch.tensor(labels), 0.0).numpy(), 1 / len(labels), rtol=1e-9)


def test_dropout_is_on_in_training_and_off_in_evaluation():
    seen = []

    class Watched(Linear):
        def forward(self, x):
            seen.append((self.training, torch.is_grad_enabled()))
            return super().forward(x)

    step, _ = make_step(Watched())
    step()
    assert seen == [(True, True), (False, False)]


def test_score_is_the_share_of_right_guesses():
    logits = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 9.0], [0.0, 1.0, 0.0]])
    value = score(logits, torch.tensor([0, 1, 1]), "micro_f1")
    assert value.dtype == torch.float64
    assert value.item() == pytest.approx(2 / 3, abs=1e-15)


def test_score_is_the_area_under_the_curve_where_asked_for():
    logits = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    labels = (torch.arange(30) % 3 == 0).long()
    probability = logits.double().softmax(-1)[:, 1].numpy()
    expected = roc_auc_score(labels.numpy(), probability)
    assert score(logits, labels, "roc_auc").item() == pytest.approx(expected)
    assert score(-logits, labels, "roc_auc").item() == pytest.approx(1 - expected)
    assert score(logits, labels, "micro_f1").item() != pytest.approx(expected)


def test_a_step_scores_by_the_metric_it_was_given():
    torch.manual_seed(1)
    model = Linear(dropout=0.0)
    step, dataset = make_step(model, metric="roc_auc")
    shown = step()[2].item()
    nodes = dataset.splits[0].val
    with torch.no_grad():
        probability = model.eval()(torch.from_numpy(dataset.x)).double().softmax(-1)[:, 1].numpy()
    assert shown == pytest.approx(roc_auc_score(dataset.y[nodes], probability[nodes]))


def test_a_diverged_model_has_a_score_all_the_same():
    logits = torch.tensor([[0.0, float("nan")], [float("inf"), 0.0], [0.0, 1.0]])
    assert 0 <= score(logits, torch.tensor([0, 1, 1]), "roc_auc").item() <= 1


def test_eager_epochs_are_steps_whose_weights_do_not_change_afterwards():
    torch.manual_seed(2)
    model = Linear(dropout=0.0)
    step, dataset = make_step(model, lr=0.5)
    epochs = EagerEpochs(step)
    (first,) = epochs.run(10)
    kept = epochs.state(0)
    frozen = {name: value.clone() for name, value in kept.items()}
    (second,) = epochs.run(1)
    assert first != second
    assert all(torch.equal(kept[name], frozen[name]) for name in frozen)
    assert not torch.equal(kept["linear.weight"], model.linear.weight)
    model.load_state_dict(kept)
    split = dataset.splits[0]
    with torch.no_grad():
        logits = model.eval()(torch.from_numpy(dataset.x))[split.val]
    assert F.cross_entropy(logits, torch.from_numpy(dataset.y[split.val])).item() == pytest.approx(first[1], rel=1e-6)


def train_on(device, model=Linear, **settings):
    dataset = tiny_dataset()
    inputs, y = (torch.from_numpy(dataset.x).to(device),), torch.from_numpy(dataset.y).to(device)
    return train(model, inputs, y, dataset.splits[0], quick(**settings), seed=3)


@needs_gpu
@pytest.mark.parametrize("epochs", [1, 15, 16, 17, 40])
def test_recorded_epochs_are_the_eager_ones(epochs):
    """Weights of the same start, no dropout: the GPU's replay must follow the CPU's steps, chunk borders included."""
    weights = Linear(dropout=0.0).state_dict()

    def build():
        model = Linear(dropout=0.0)
        model.load_state_dict(weights)
        return model

    cpu, gpu = (train_on(device, build, lr=0.05, epochs=epochs) for device in ("cpu", "cuda"))
    assert [e.epoch for e in gpu.history] == [e.epoch for e in cpu.history]
    for ours, theirs in zip(gpu.history, cpu.history, strict=True):
        assert (ours.train_loss, ours.val_loss) == pytest.approx((theirs.train_loss, theirs.val_loss), abs=1e-4)
    assert gpu.best_epoch == cpu.best_epoch
    for name, value in cpu.state.items():
        torch.testing.assert_close(gpu.state[name], value, rtol=1e-3, atol=1e-4)


@needs_gpu
def test_recorded_epochs_repeat_themselves_with_dropout():
    first, second, other = (train_on("cuda", lambda: Linear(dropout=0.5), epochs=40) for _ in range(3))
    assert first.history == second.history == other.history
    assert all(torch.equal(first.state[name], second.state[name]) for name in first.state)
    losses = [e.train_loss for e in first.history]
    assert len(set(losses)) == len(losses)  # every replay draws anew


@needs_gpu
def test_the_state_of_recorded_epochs_is_the_kept_epochs():
    result = train_on("cuda", lr=0.3, epochs=60, patience=60)
    assert result.best_epoch < result.epochs
    kept = result.history[result.best_epoch - 1]
    assert (result.val_loss, result.val_score) == pytest.approx((kept.val_loss, kept.val_score), abs=1e-6)


@needs_gpu
def test_recorded_epochs_stop_within_a_chunk():
    result = train_on("cuda", Constant, epochs=100, patience=7)
    assert (result.epochs, len(result.history), result.best_epoch) == (8, 8, 8)
