"""row_softmax against PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import DEVICES, close_for_any_threads, opcheck
from torch import Tensor

from asgat.kernels import row_softmax
from asgat.kernels.row_softmax import _row_softmax, _row_softmax_grad


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    shape=st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 9)), scale=st.sampled_from([1e-3, 1.0, 300.0])
)
@settings(max_examples=20, deadline=None)
def test_values_and_gradients(device: str, dtype: torch.dtype, shape: tuple[int, ...], scale: float) -> None:
    score = (scale * torch.randn(shape, dtype=dtype, device=device)).requires_grad_()
    with torch.no_grad():
        score[..., 1:].masked_fill_(torch.rand(shape, device=device)[..., 1:] < 0.3, -torch.inf)  # fillers
    ours, theirs = row_softmax(score), torch.softmax(score, dim=-1)
    torch.testing.assert_close(ours, theirs)
    direction = torch.randn(shape, dtype=dtype, device=device)
    torch.testing.assert_close(*(torch.autograd.grad(out, score, direction)[0] for out in (ours, theirs)))


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(row_softmax, torch.randn(4, 5, dtype=torch.float64, requires_grad=True))


def test_no_entries() -> None:
    assert row_softmax(torch.empty(2, 3, 0)).shape == (2, 3, 0)


def test_half_precision_is_left_to_pytorch() -> None:
    score = torch.randn(3, 4, dtype=torch.bfloat16)
    assert torch.equal(row_softmax(score), torch.softmax(score, dim=-1))


def test_operators_are_well_formed() -> None:
    score = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    opcheck(_row_softmax, score)
    opcheck(_row_softmax_grad, torch.softmax(score.detach(), -1), torch.randn(3, 4, dtype=torch.float64))


def test_several_threads() -> None:
    score = torch.randn(100_000, 9, requires_grad=True)

    def compute() -> tuple[Tensor, ...]:
        out = row_softmax(score)
        return out.detach(), torch.autograd.grad((out * out).sum(), score)[0]

    close_for_any_threads(compute)
