import pytest
import torch
from torch import nn

from asgat.training.lean_adam import LeanAdam


def train(advance, fused=True, frozen=False, steps=7):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    unused = nn.Parameter(torch.ones(3))
    parameters = [*net.parameters(), *([unused] if frozen else [])]
    adam = LeanAdam(parameters, lr=0.05, weight_decay=0.01, fused=fused)
    x = torch.randn(9, 5)
    for i in range(steps):
        if i == 4:  # as a run that goes on from a checkpoint
            again = LeanAdam(parameters, lr=0.05, weight_decay=0.01, fused=fused)
            again.load_state_dict(adam.state_dict())
            adam = again
        for parameter in parameters:
            parameter.grad = None
        net(x).square().sum().backward()
        advance(adam)
    return [parameter.detach() for parameter in parameters], adam.state_dict()


@pytest.mark.parametrize(("fused", "frozen"), [(True, False), (True, True), (False, False)])
def test_weights_and_state_are_those_of_pytorch_bit_for_bit(fused, frozen):
    ours, state = train(LeanAdam.advance, fused, frozen)
    theirs, expected = train(LeanAdam.step, fused, frozen)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert state["state"].keys() == expected["state"].keys()
    for number, values in expected["state"].items():
        assert all(torch.equal(state["state"][number][key], value) for key, value in values.items())


def test_the_usual_step_is_left_aside_once_the_state_is_there(monkeypatch):
    called = []
    whole = LeanAdam.step
    monkeypatch.setattr(LeanAdam, "step", lambda self: called.append(1) or whole(self))  # type: ignore[func-returns-value]
    train(LeanAdam.advance)
    assert len(called) == 1
