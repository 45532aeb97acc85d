from contextlib import contextmanager

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.training.small import jobs, problem

from asgat.data.dataset import Split
from asgat.nn.asgat import ASGAT
from asgat.training.batched_step import BatchedStep, CapturedBatch, EagerBatch, Job
from asgat.training.step import Step


def make_step(chosen, model="asgat-plus", metric="micro_f1"):
    build, inputs, y = problem(model, chosen[0].config)
    states, streams = [], []
    for job in chosen:
        torch.manual_seed(job.seed)
        states.append(build(job.config).state_dict())
        streams.append(torch.Generator().set_state(torch.get_rng_state()))
    state = {name: torch.stack([own[name] for own in states]).requires_grad_() for name in states[0]}
    net = build(chosen[0].config)
    assert isinstance(net, ASGAT)
    return BatchedStep(net, state, streams, inputs, y, chosen, metric)


def single_figures(job, model="asgat-plus", metric="micro_f1", epochs=3):
    build, inputs, y = problem(model, job.config)
    torch.manual_seed(job.seed)
    step = Step(build(job.config), inputs, y, job.split, job.config, metric)
    return [step().tolist() for _ in range(epochs)]


@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
@pytest.mark.parametrize("balance", [None, 0.5, 1.0])
def test_epochs_are_those_of_single_steps(metric, balance):
    chosen = jobs(
        "asgat-plus",
        [{}, {"dropout": 0.0}, {"weight_decay": 0.1}],
        balanced=balance is not None,
        balance=balance or 1.0,
    )
    epochs = EagerBatch(make_step(chosen, metric=metric))
    together = [epochs.run(9)[0] for _ in range(3)]
    for run, job in enumerate(chosen):
        alone = single_figures(job, metric=metric)
        assert [figures[run] for figures in together] == [pytest.approx(row, abs=1e-12) for row in alone]


def test_parts_of_different_sizes():
    first, second = jobs("asgat-plus", [{}, {}])
    shorter = Split(first.split.train[:5], second.split.val[:3], second.split.test)
    chosen = [first, Job(shorter, second.seed, second.config)]
    (figures,) = EagerBatch(make_step(chosen)).run(1)
    for run, job in enumerate(chosen):
        assert figures[run] == pytest.approx(single_figures(job, epochs=1)[0], abs=1e-12)


def test_a_selection_goes_on_where_it_was():
    chosen = jobs("asgat-plus", [{}, {}, {"lr": 0.05}])
    whole, part = make_step(chosen), make_step(chosen)
    EagerBatch(whole).run(1)
    EagerBatch(part).run(1)
    part = part.select([0, 2])
    (expected,), (figures,) = EagerBatch(whole).run(1), EagerBatch(part).run(1)
    assert figures == [expected[0], expected[2]]
    for name, value in part.model.state.items():
        assert torch.equal(value, whole.model.state[name][[0, 2]])


def test_without_dropout_nothing_is_drawn():
    step = make_step(jobs("asgat-plus", [{}, {}], dropout=0.0))
    before = [stream.get_state() for stream in step.streams]
    assert step.draw(4) is None
    assert all(torch.equal(a, b.get_state()) for a, b in zip(before, step.streams, strict=True))


def test_draws_are_those_of_calls_one_after_the_other():
    step = make_step(jobs("asgat-plus", [{}, {"dropout": 0.0}]))
    (generator, _) = (torch.Generator().set_state(stream.get_state()) for stream in step.streams)
    drawn = step.draw(3)
    expected = [int(torch.randint(2**62, (), generator=generator)) for _ in range(3 * step.model.dropouts)]
    assert drawn[:, :, 0].flatten().tolist() == expected


def test_weights_are_copies_of_the_rows_asked_for():
    epochs = EagerBatch(make_step(jobs("asgat-plus", [{}, {}, {}])))
    epochs.run(1)
    weights = epochs.weights([2, 0], [0, 0])
    for name, value in epochs.step.model.state.items():
        assert torch.equal(weights[name], value.detach()[[2, 0]])
        assert weights[name].data_ptr() != value.data_ptr()


def test_the_loss_is_the_cross_entropy_of_the_training_nodes():
    (job,) = jobs("asgat-plus", [{"dropout": 0.0}])
    step = make_step([job])
    with torch.no_grad():
        logits = step.model()[0]
    nodes = job.split.train
    expected = F.cross_entropy(logits[nodes], step.y[nodes]).item()
    assert EagerBatch(step).run(1)[0][0][0] == pytest.approx(expected, abs=1e-12)
    assert np.isfinite(expected)


class Replayed(CapturedBatch):
    """Records nothing: a replay runs the epoch again, which is what CUDA does with what it recorded."""

    def __init__(self, step):
        super().__init__(step)
        self.graph.replay = lambda: self._epoch(any(job.config.dropout for job in step.jobs))  # type: ignore[method-assign]


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

    for name, stand_in in {
        "Stream": Anything,
        "current_stream": Anything,
        "stream": entered,
        "CUDAGraph": Anything,
        "graph": entered,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)


@pytest.mark.parametrize("shared", [{}, {"dropout": 0.0}], ids=str)
def test_chunks_are_epochs_one_after_the_other(no_cuda, shared):
    chosen = jobs("asgat-plus", [{}, {}, {}], **shared)
    eager, captured = EagerBatch(make_step(chosen)), Replayed(make_step(chosen))
    for limit, count in [(40, 16), (3, 3)]:
        after = []
        expected = []
        for _ in range(count):
            expected += eager.run(1)
            after.append(eager.weights([0, 1, 2], [0, 0, 0]))
        assert captured.run(limit) == expected
        weights = captured.weights([2, 0], [1, count - 1])
        for name, value in weights.items():
            assert torch.equal(value, torch.stack([after[1][name][2], after[count - 1][name][0]]))
