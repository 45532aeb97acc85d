"""Epochs of one run: the same numbers, eager, recorded and from a snapshot."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.training.selections import assert_reuse_changes_nothing
from tests.training.small import jobs, make_task, settings
from tests.training.tiny import Constant, Linear, quick, tiny_dataset

from asgat.errors import AsgatError
from asgat.training.loop import train
from asgat.training.program import CapturedEpochs, EagerEpochs, Program, Task, epochs_of
from asgat.training.run_state import Job, Run

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DTYPES = [torch.float32, torch.float64]


def program_of(job, dtype=torch.float64, metric="micro_f1", snapshot=None):
    return Program(make_task("asgat-plus", job.config, dtype, metric), Run(job, 0.5), snapshot)


def single_program(model, metric="micro_f1", **changes):
    """Of a model on the tiny data set."""
    dataset = tiny_dataset(metric=metric)
    task = Task(lambda config: model, (torch.from_numpy(dataset.x),), torch.from_numpy(dataset.y), metric)
    return Program(task, Run(Job(dataset.splits[0], 0, quick(**changes)), 0.5)), dataset


def figures(program, epochs=3):
    """Figures of the next epochs."""
    eager = EagerEpochs(program)
    return [eager.run(1)[0] for _ in range(epochs)]


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, value in other.items():
        assert torch.equal(one[name], value), name


# -- one run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_an_epoch_is_a_step_of_adam_and_then_an_evaluation(weight_decay):
    torch.manual_seed(0)
    model, reference = Linear(dropout=0.0), Linear(dropout=0.0)
    reference.load_state_dict(model.state_dict())
    program, dataset = single_program(model, lr=0.1, weight_decay=weight_decay)
    x, y, split = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y), dataset.splits[0]
    adam = torch.optim.Adam(reference.parameters(), lr=0.1, weight_decay=weight_decay)
    for _ in range(4):
        found = program.epoch().tolist()
        adam.zero_grad()
        loss = F.cross_entropy(reference(x)[split.train], y[split.train])
        loss.backward()
        adam.step()
        with torch.no_grad():
            logits = reference(x)[split.val]
        val_loss = F.cross_entropy(logits, y[split.val]).item()
        right = float(np.mean(logits.argmax(-1).numpy() == dataset.y[split.val]))
        assert found == pytest.approx([loss.item(), val_loss, right], rel=1e-6)
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_dropout_is_on_in_training_and_off_in_evaluation():
    seen = []

    class Watched(Linear):
        def forward(self, x):
            seen.append((self.training, torch.is_grad_enabled()))
            return super().forward(x)

    single_program(Watched())[0].epoch()
    assert seen == [(True, True), (False, False)]


def test_weights_that_are_kept_do_not_change_afterwards():
    torch.manual_seed(2)
    model = Linear(dropout=0.0)
    program, dataset = single_program(model, lr=0.5)
    epochs = EagerEpochs(program)
    (first,) = epochs.run(10)
    epochs.keep(0)
    (second,) = epochs.run(1)
    assert first != second
    assert not torch.equal(program.kept["linear.weight"], model.linear.weight)
    scores = program.scores()
    assert scores["val_loss"] == pytest.approx(first[1], rel=1e-6)
    assert scores["val_score"] == first[2]
    assert dataset.metric == "micro_f1"


# -- snapshots --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_goes_on_from_its_snapshot(dropout, dtype):
    (job,) = jobs("asgat-plus", [{}], dropout=dropout)
    whole = program_of(job, dtype)
    figures(whole, 2)
    expected = figures(whole)
    part = program_of(job, dtype)
    figures(part, 2)
    part.keep()
    snapshot = part.snapshot()
    figures(part, 1)  # the snapshot is a copy
    torch.manual_seed(99)
    part = program_of(job, dtype, snapshot=snapshot)
    assert_equal(part.kept, {n.removeprefix("model."): v for n, v in snapshot.items() if n.startswith("model.")})
    assert figures(part) == expected
    assert_equal(part.weights, whole.weights)


@pytest.mark.parametrize(
    "changes",
    [
        {"model.": None},
        {"kept.x": torch.zeros(1)},
        {"adam.0.step": None},
        {"adam.0.step": torch.zeros(1)},
        {"adam.0.exp_avg": torch.zeros(1)},
        {"adam.0.exp_avg": torch.zeros(1, dtype=torch.int64)},
        {"random": torch.zeros(7, dtype=torch.uint8)},
        {"random": torch.zeros(5056, dtype=torch.uint8)},
        {"random": torch.zeros(5056)},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_snapshot_of_another_model_is_refused(changes):
    (job,) = jobs("asgat-plus", [{}])
    snapshot = program_of(job).snapshot()
    names = {min(n for n in snapshot if n.startswith("model.")) if key == "model." else key: key for key in changes}
    spoilt = {**snapshot, **{name: changes[key] for name, key in names.items()}}
    with pytest.raises(AsgatError, match=r"another model.*--fresh"):
        program_of(job, snapshot={name: value for name, value in spoilt.items() if value is not None})


def test_without_dropout_nothing_is_drawn():
    (job,) = jobs("asgat-plus", [{}], dropout=0.0)
    program = program_of(job)
    before = torch.get_rng_state()
    program.epoch()
    assert torch.equal(before, torch.get_rng_state())


# -- tasks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "resumable"), [("asgat-cheb", True), ("asgat-deep", True), ("asgat-arma", False), ("mlp", True)]
)
def test_what_can_be_resumed(model, resumable):
    assert make_task(model, settings(model, hidden=8), torch.float32).resumable is resumable


def test_an_example_leaves_the_random_numbers_alone():
    task = make_task("asgat-cheb", settings("asgat-cheb"))
    before = torch.get_rng_state()
    task.example(settings("asgat-cheb"))
    assert torch.equal(torch.get_rng_state(), before)


# -- recorded epochs --------------------------------------------------------------------------------


class Replayed(CapturedEpochs):
    """Records nothing: a replay runs the epoch again, which is what CUDA does with what it recorded."""

    def __init__(self, program):
        self.start = torch.get_rng_state()
        super().__init__(program)
        self.graph.replay = self._epoch  # type: ignore[method-assign]


@pytest.fixture
def no_cuda(monkeypatch):
    class Anything:
        def __init__(self, *_):
            pass

        def wait_stream(self, _):
            pass

    @contextmanager
    def entered(_):
        yield

    stand_ins = {"Stream": Anything, "current_stream": Anything, "stream": entered, "CUDAGraph": Anything}
    stand_ins |= {"graph": entered, "get_rng_state": lambda _: None, "set_rng_state": lambda *_: None}
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_chunks_are_epochs_one_after_the_other(no_cuda, dropout):
    (job,) = jobs("asgat-plus", [{"lr": 0.02}], dropout=dropout)
    eager, counts, expected, after = EagerEpochs(program_of(job)), [(40, 16), (3, 3)], [], []
    for _ in range(19):
        expected += eager.run(1)
        after.append({name: value.clone() for name, value in eager.program.weights.items()})
    captured = Replayed(program_of(job))
    torch.set_rng_state(captured.start)
    for limit, count in counts:
        assert captured.run(limit) == expected[:count]
        for position in (1, count - 1):
            captured.keep(position)
            assert_equal(captured.program.kept, after[position])
        expected, after = expected[count:], after[count:]


def test_only_programs_on_cuda_are_recorded():
    assert isinstance(epochs_of(program_of(jobs("asgat-plus", [{}])[0])), EagerEpochs)


def train_on(device, model=Linear, **changes):
    dataset = tiny_dataset()
    inputs, y = (torch.from_numpy(dataset.x).to(device),), torch.from_numpy(dataset.y).to(device)
    return train(lambda config: model(), inputs, y, dataset.splits[0], quick(**changes), seed=3)


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
    assert_equal(first.state, second.state)
    losses = [e.train_loss for e in first.history]
    assert len(set(losses)) == len(losses)  # every replay draws other numbers


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


def test_selections_used_again_are_those_of_the_whole_table():
    config = settings("asgat-cheb", form="table", candidates=8, cap=6, dropout=0.3)
    task = make_task("asgat-cheb", config, torch.float32)
    assert_reuse_changes_nothing(task, jobs("asgat-cheb", [{}])[0].split, config)
