import pytest
import torch

from asgat.training.adam import Adam

SHAPES = [(3, 5), (7,), (4, 2)]


def gradients(step, dtype, skip=None):
    """A parameter without gradient has None."""
    generator = torch.Generator().manual_seed(step)
    drawn = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
    return [None if i == skip else value for i, value in enumerate(drawn)]


@pytest.mark.parametrize("skip", [None, 1], ids=["all", "one without gradient"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoupled", [False, True], ids=["adam", "adamw"])
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_parameters_move_as_with_pytorchs_optimisers_to_the_last_bit(decay, decoupled, dtype, skip):
    torch.manual_seed(0)
    start = [torch.randn(shape).to(dtype) for shape in SHAPES]
    own = [value.clone() for value in start]
    adam = Adam(own, 0.1, decay, decoupled)
    reference = [value.clone().requires_grad_() for value in start]
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    theirs = kind(reference, lr=0.1, weight_decay=decay, fused=True)
    for step in range(5):
        drawn = gradients(step, dtype, skip)
        adam.step(drawn)
        for value, gradient in zip(reference, drawn, strict=True):
            value.grad = gradient
        theirs.step()
    for i, (value, expected) in enumerate(zip(own, reference, strict=True)):
        assert torch.equal(value, expected.detach())
        if i == skip:
            assert torch.equal(value, start[i])


def test_a_run_goes_on_where_its_state_is_copied():
    torch.manual_seed(0)
    parameters = [torch.randn(shape) for shape in SHAPES]
    first = Adam(parameters, 0.1, 0.5)
    first.step(gradients(0, torch.float32))
    copied = [value.clone() for value in parameters]
    second = Adam(copied, 0.1, 0.5)
    for name, value in second.state().items():
        value.copy_(first.state()[name])
    drawn = gradients(1, torch.float32)
    first.step(drawn)
    second.step(drawn)
    for value, expected in zip(copied, parameters, strict=True):
        assert torch.equal(value, expected)
    assert second.state().keys() == {f"{i}.{part}" for i in range(3) for part in ("step", "exp_avg", "exp_avg_sq")}
    assert second.state()["0.step"] == 2
