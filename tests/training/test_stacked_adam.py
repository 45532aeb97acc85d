import pytest
import torch

from asgat.training.stacked_adam import StackedAdam

RATES = [(0.1, 0.0), (0.1, 0.0), (0.1, 0.5), (0.3, 0.5)]


def gradients(step, parameters):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(value.shape, generator=generator).to(value.dtype) for value in parameters]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_run_moves_as_under_pytorchs_adam(dtype):
    torch.manual_seed(0)
    parameters = [torch.randn(4, 3, 5).to(dtype), torch.randn(4, 7).to(dtype)]
    alone = [[value[run].clone().requires_grad_() for value in parameters] for run in range(4)]
    adams = [torch.optim.Adam(own, lr=lr, weight_decay=decay) for own, (lr, decay) in zip(alone, RATES, strict=True)]
    together = StackedAdam(parameters, RATES)
    for step in range(5):
        drawn = gradients(step, parameters)
        together.step(drawn)
        for run, adam in enumerate(adams):
            for value, gradient in zip(alone[run], drawn, strict=True):
                value.grad = gradient[run]
            adam.step()
    for i, value in enumerate(parameters):
        torch.testing.assert_close(value, torch.stack([own[i].detach() for own in alone]))


def test_a_selection_goes_on_where_it_was():
    torch.manual_seed(0)
    parameters = [torch.randn(4, 6, dtype=torch.float64)]
    together = StackedAdam(parameters, RATES)
    together.step(gradients(0, parameters))
    rows = [1, 3]
    chosen = [parameters[0][rows]]
    part = together.select(chosen, rows)
    drawn = gradients(1, parameters)
    together.step(drawn)
    part.step([drawn[0][rows]])
    assert torch.equal(chosen[0], parameters[0][rows])


def test_a_parameter_without_gradient_stays():
    parameters = [torch.ones(4, 2), torch.ones(4, 2)]
    StackedAdam(parameters, RATES).step([None, torch.ones(4, 2)])
    assert torch.equal(parameters[0], torch.ones(4, 2))
    assert (parameters[1] < 1.0).all()
