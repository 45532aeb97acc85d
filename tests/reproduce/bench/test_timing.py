from functools import partial

import pytest
import torch

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from reproduce.bench.timing import asgat_timer, medians, plain_timer, timed_training

DATA, CONFIG = load_dataset("karate"), ASGATConfig(heads=1, hidden=4, dropout=0.0, lr=0.1)


def build(config):
    return torch.nn.Linear(DATA.num_features, 2)


def test_a_training_has_a_time_and_ends_after_the_given_epochs():
    ms, result = timed_training(build, (torch.from_numpy(DATA.x),), DATA, CONFIG, 5)
    assert 0 < ms < 1000
    assert (result.epochs, result.restarts) == (6, 0)
    assert result.history[-1].train_loss < result.history[0].train_loss


@pytest.mark.parametrize("timer", [asgat_timer, plain_timer])
def test_a_timer_trains(timer):
    class Counted(torch.nn.Linear):
        steps = 0

        def forward(self, x):
            Counted.steps += self.training
            return super().forward(x)

    run = timer(lambda config: Counted(DATA.num_features, 2), (torch.from_numpy(DATA.x),), DATA, CONFIG)
    before = Counted.steps
    assert 0 < run() < 1000
    assert Counted.steps > before > 0


def test_contenders_take_turns_and_some_less_often():
    order = []
    clock = {"a": iter([1.0, 9.0, 2.0]), "b": iter([5.0, 7.0])}

    def run(key):
        order.append(key)
        return next(clock[key])

    found = medians({key: partial(run, key) for key in clock}, 3, lambda _: None, {"b": 2})
    assert order == ["a", "b", "a", "b", "a"]
    assert found == {"a": 2.0, "b": 6.0}
