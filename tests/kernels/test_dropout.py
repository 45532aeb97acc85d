"""Dropout: the right share, nothing but zeros and scaled entries, the same mask in the gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import CUDA, DEVICES, captured, close_for_any_threads
from torch import Tensor

from asgat.kernels import plain
from asgat.kernels.dropout import draw_seed, dropout, seeded_dropout


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@given(shape=st.lists(st.integers(0, 7), max_size=3), p=st.floats(0.01, 0.99))
@settings(max_examples=15, deadline=None)
def test_entries_are_zero_or_scaled(device: str, dtype: torch.dtype, shape: list[int], p: float) -> None:
    x = torch.randn(shape, dtype=dtype, device=device)
    out = dropout(x, p)
    assert out.dtype == dtype
    assert out.shape == x.shape
    scaled = x.double() / (1 - p)
    assert ((out == 0) | torch.isclose(out.double(), scaled, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6)).all()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_independence(p: float) -> None:
    torch.manual_seed(0)
    size = 400_000
    first, second = ((dropout(torch.ones(size), p) == 0).double() for _ in range(2))
    spread = 5 * (p * (1 - p) / size) ** 0.5
    assert abs(first.mean() - p) < spread
    for other in (second, first.roll(1), first.roll(64), first.roll(1024)):  # neighbours, rows, and another call
        both = (first * other).mean()
        assert abs(both - p * p) < spread


def test_the_gradient_has_the_same_mask() -> None:
    x = torch.randn(300, 7, dtype=torch.float64, requires_grad=True)
    out = dropout(x, 0.4)
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad * x, out)


def test_seeds_repeat_it_and_differ() -> None:
    def drawn(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return dropout(torch.ones(1000), 0.5)

    assert torch.equal(drawn(3), drawn(3))
    assert not torch.equal(drawn(3), drawn(4))


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.5, False)])
def test_nothing_to_drop(p: float, training: bool) -> None:
    x = torch.randn(3)
    assert dropout(x, p, training) is x


def test_non_contiguous_input() -> None:
    x = torch.arange(12.0).view(3, 4).t()
    out = dropout(x, 0.5)
    assert ((out == 0) | (out == 2 * x)).all()


def test_several_threads() -> None:
    x = torch.randn(1000, 1000)

    def compute() -> tuple[Tensor, ...]:
        torch.manual_seed(0)
        return (dropout(x, 0.3),)

    close_for_any_threads(compute)


# -- seeds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.3, 0.9])
def test_a_seed_gives_the_same_mask_on_every_device(device: str, dtype: torch.dtype, p: float) -> None:
    x = torch.randn(50, 41).to(dtype)
    torch.manual_seed(5)
    expected = dropout(x, p)
    torch.manual_seed(5)
    seed = draw_seed(torch.device("cpu"))
    held = x.to(device).requires_grad_()
    out = seeded_dropout(held, p, seed.to(device))
    assert torch.equal(out.detach().cpu(), expected)
    assert torch.equal(plain.dropout(x.flatten(), p, seed).view(50, 41), expected)
    factor = torch.randn(out.shape, dtype=dtype, device=device)
    (grad,) = torch.autograd.grad((out * factor).sum(), held)
    torch.testing.assert_close(grad, factor * seeded_dropout(torch.ones_like(out), p, seed.to(device)))


@pytest.mark.parametrize("device", [CUDA])
def test_every_replay_of_a_recorded_graph_draws_another_mask(device: str) -> None:
    x = torch.ones(10_000, device=device)
    torch.manual_seed(0)
    graph, (out,) = captured(lambda: (dropout(x, 0.5),))
    drawn = []
    for _ in range(2):
        graph.replay()
        drawn.append(out.clone())
    assert abs(float((drawn[0] == 0).float().mean()) - 0.5) < 0.05
    assert not torch.equal(*drawn)
