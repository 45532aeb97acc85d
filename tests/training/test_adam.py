import pytest
import torch

from asgat.training.adam import Adam

RATES = [(0.1, 0.0), (0.1, 0.0), (0.1, 0.5), (0.3, 0.5)]
SHAPES = [(3, 5), (7,), (4, 2)]


def gradients(step, dtype, skip=None):
    """Of four runs; a parameter without gradient has None."""
    generator = torch.Generator().manual_seed(step)
    drawn = [torch.randn(4, *shape, generator=generator).to(dtype) for shape in SHAPES]
    return [None if i == skip else value for i, value in enumerate(drawn)]


@pytest.mark.parametrize("skip", [None, 1], ids=["all", "one without gradient"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2], [3, 0]], ids=str)
def test_every_run_moves_as_with_pytorchs_adam_to_the_last_bit(dtype, rows, skip):
    torch.manual_seed(0)
    start = [torch.randn(4, *shape).to(dtype) for shape in SHAPES]
    parameters = [value[rows].clone() for value in start]
    stacked = Adam(parameters, [RATES[row] for row in rows], stacked=True)
    single = [[value[row].clone() for value in start] for row in rows]
    alone = [Adam(own, [RATES[row]], stacked=False) for own, row in zip(single, rows, strict=True)]
    reference = [[value[row].clone().requires_grad_() for value in start] for row in rows]
    adams = [
        torch.optim.Adam(own, lr=RATES[row][0], weight_decay=RATES[row][1], fused=True)
        for own, row in zip(reference, rows, strict=True)
    ]
    for step in range(5):
        drawn = gradients(step, dtype, skip)
        stacked.step([None if value is None else value[rows] for value in drawn])
        for place, row in enumerate(rows):
            own = [None if value is None else value[row] for value in drawn]
            alone[place].step(own)
            for value, gradient in zip(reference[place], own, strict=True):
                value.grad = gradient
            adams[place].step()
    for place, row in enumerate(rows):
        for i in range(len(SHAPES)):
            expected = reference[place][i].detach()
            assert torch.equal(parameters[i][place], expected)
            assert torch.equal(single[place][i], expected)
            if i == skip:
                assert torch.equal(expected, start[i][row])


def test_a_run_goes_on_in_another_stack_where_its_state_is_copied():
    torch.manual_seed(0)
    parameters = [torch.randn(4, *shape) for shape in SHAPES]
    first = Adam(parameters, RATES, stacked=True)
    first.step(gradients(0, torch.float32))
    rows = [3, 1]
    chosen = [value[rows].clone() for value in parameters]
    second = Adam(chosen, [RATES[row] for row in rows], stacked=True)
    for place, row in enumerate(rows):
        for name, value in second.state(place).items():
            value.copy_(first.state(row)[name])
    drawn = gradients(1, torch.float32)
    first.step(drawn)
    second.step([value[rows] for value in drawn])
    for value, expected in zip(chosen, parameters, strict=True):
        assert torch.equal(value, expected[rows])
    assert second.state(0).keys() == {f"{i}.{part}" for i in range(3) for part in ("step", "exp_avg", "exp_avg_sq")}
    assert second.state(0)["0.step"] == 2
