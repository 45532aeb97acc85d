import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spectral.conformance import DOUBLE, assert_near

from asgat.spectral.conjugate_gradients import Solve, conjugate_gradients


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=30)
def test_conjugate_gradients_solve(seed, size, heads):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((heads, size, size))
    matrix = torch.from_numpy(root @ root.transpose(0, 2, 1) + np.eye(size))
    right = torch.from_numpy(rng.standard_normal((size, heads, 4)))
    right[:, :, 1] = 0.0

    def product(signal):
        return torch.einsum("hmn,nhb->mhb", matrix, signal)

    solution, steps, residual = conjugate_gradients(product, right, 200)
    expected = torch.linalg.solve(matrix, right.transpose(0, 1)).transpose(0, 1)
    assert_near(solution, expected, 1e-8)
    assert 1 <= steps < 200
    assert (solution[:, :, 1] == 0).all()
    assert (residual[:, 1] == 0).all()
    assert residual.max() < 1e-12
    short, taken, left = conjugate_gradients(product, right, 1)
    assert taken == 1
    relative = (right - product(short)).norm(dim=0) / right.norm(dim=0).clamp(min=1e-300)
    assert_near(left, relative)


def test_a_right_side_of_zeros_takes_no_step():
    zeros = torch.zeros(5, 2, 3, dtype=DOUBLE)
    solution, taken, residual = conjugate_gradients(lambda signal: signal, zeros, 9)
    assert taken == 0
    assert (solution == 0).all()
    assert (residual == 0).all()


@pytest.mark.parametrize("precision", [torch.float32, DOUBLE])
def test_conjugate_gradients_end_where_rounding_begins(precision):
    """Ten times the unit of rounding, relative to the column; not a step more."""
    diagonal = torch.linspace(1.0, 2.0, 40, dtype=precision)[:, None, None]
    right = 1e3 * torch.ones(40, 1, 1, dtype=precision)
    _, taken, residual = conjugate_gradients(lambda signal: diagonal * signal, right, 200)
    _, _, before = conjugate_gradients(lambda signal: diagonal * signal, right, taken - 1)
    eps = torch.finfo(precision).eps
    assert residual.item() < 20 * eps
    assert before.item() > 5 * eps


def test_the_gradient_of_a_solution_is_another_solution():
    root = torch.randn(5, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    inverse = torch.linalg.inv(root @ root.t() + torch.eye(5, dtype=DOUBLE))
    signal = torch.randn(5, 1, 2, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: Solve.apply(x, lambda right: torch.einsum("mn,nhb->mhb", inverse, right)), (signal,)
    )


def test_second_derivatives_pass_through_solutions_not_through_steps():
    root = torch.randn(5, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    matrix = root @ root.t() + torch.eye(5, dtype=DOUBLE)

    def solve(right):
        return conjugate_gradients(lambda signal: torch.einsum("mn,nhb->mhb", matrix, signal), right, 100)[0]

    signal = torch.randn(5, 1, 2, dtype=DOUBLE)
    signal[:, :, 1] = 0.0  # takes no step
    signal.requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: Solve.apply(x, solve) ** 2, (signal,))
