"""Dropout: the right share, nothing but zeros and scaled entries, the same mask in the gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import DEVICES, close_for_any_threads
from torch import Tensor

from asgat.kernels import dropout, dropout_runs, dropout_seeds, plain


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


# -- several runs at once ---------------------------------------------------------------------------


def drawn_alone(x: Tensor, p: Tensor, seed: int) -> tuple[list[Tensor], Tensor]:
    """What single runs make of x, each with a generator of its own, and the seeds they drew."""
    outputs, seeds = [], []
    for run, share in enumerate(p.tolist()):
        torch.manual_seed(seed + run)
        seeds.append(torch.randint(2**62, ()))
        torch.manual_seed(seed + run)
        outputs.append(dropout(x[run % len(x)], share))
    return outputs, torch.stack(seeds)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [False, True])
def test_runs_have_the_masks_they_have_alone(device: str, dtype: torch.dtype, shared: bool) -> None:
    p = torch.tensor([0.0, 0.3, 0.9], dtype=torch.float64)
    x = torch.randn(1 if shared else 3, 50, 41).to(dtype)
    alone, seeds = drawn_alone(x, p, seed=5)
    held = x.to(device).requires_grad_()
    together = dropout_runs(held, p.to(device), seeds.to(device))
    assert torch.equal(together.detach().cpu(), torch.stack(alone))
    assert torch.equal(plain.dropout_runs(x.flatten(1), p, seeds).view(3, 50, 41), torch.stack(alone))
    factor = torch.randn(together.shape, dtype=dtype, device=device)
    (grad,) = torch.autograd.grad((together * factor).sum(), held)
    ones = dropout_runs(torch.ones_like(together), p.to(device), seeds.to(device))
    expected = factor * ones
    torch.testing.assert_close(grad, expected.sum(dim=0, keepdim=True) if shared else expected)


def test_given_seeds_are_asked_for_once_per_dropout_of_stacked_runs() -> None:
    x = torch.randn(2, 400)
    asked: list[int] = []

    def seeds() -> Tensor:
        asked.append(len(asked))
        return torch.tensor([7, 8 + len(asked)])

    with dropout_seeds(seeds):
        first, second = dropout(x, (0.5, 0.5)), dropout(x, (0.5, 0.5))
        dropout(x, (0.0, 0.0))
        dropout(x, (0.5, 0.5), training=False)
        dropout(x, 0.5)
    assert asked == [0, 1]
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])
    torch.manual_seed(0)
    free = dropout(x, (0.5, 0.5))
    assert asked == [0, 1], "outside of it they come from PyTorch's generator"
    torch.manual_seed(0)
    assert torch.equal(dropout(x, (0.5, 0.5)), free)


@pytest.mark.parametrize("device", DEVICES)
def test_a_stack_of_one_drops_as_a_single_run(device: str) -> None:
    x = torch.randn(30, 7)
    torch.manual_seed(2)
    expected = dropout(x, 0.4)
    torch.manual_seed(2)
    seed = torch.randint(2**62, (1,)).to(device)
    with dropout_seeds(lambda: seed):
        assert torch.equal(dropout(x.to(device), (0.4,)).cpu(), expected)


def test_runs_with_several_threads() -> None:
    x, p, seeds = torch.randn(3, 400_000), torch.full((3,), 0.4).double(), torch.tensor([1, 2**61, 3])
    close_for_any_threads(lambda: (dropout_runs(x, p, seeds),))
