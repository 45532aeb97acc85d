"""The plain operators against the compiled ones: they serve where no compiler does."""

import pytest
import torch

from asgat.kernels import RaggedRows, backend, dropout, gather_sum, plain, row_softmax, select_top
from asgat.kernels.sparse_features import SparseFeatures


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_load", lambda operator, device: plain)


def test_gather_sum(request: pytest.FixtureRequest) -> None:
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, 6, (9, 3))
    expected = gather_sum(x, index, weight)
    request.getfixturevalue("without_compiler")
    torch.testing.assert_close(gather_sum(x, index, weight), expected)
    assert torch.autograd.gradcheck(gather_sum, (x, index, weight))


def test_gather_sum_with_bias(request: pytest.FixtureRequest) -> None:
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((6, 4), (9, 3), (3, 4)))
    index = torch.randint(0, 6, (9, 3))
    expected = gather_sum(x, index, weight, bias)
    request.getfixturevalue("without_compiler")
    torch.testing.assert_close(gather_sum(x, index, weight, bias), expected)


def test_dropout_and_softmax(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("without_compiler")
    score = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(row_softmax(score), torch.softmax(score, dim=-1))
    assert torch.autograd.gradcheck(row_softmax, score)
    x = torch.ones(100, 100, requires_grad=True)
    out = dropout(x, 0.25)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(grad, out)
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert abs((out == 0).float().mean() - 0.25) < 0.03


def test_csr_matmul(request: pytest.FixtureRequest) -> None:
    x = SparseFeatures.from_dense(torch.randn(5, 4).relu(), dtype=torch.float64)
    dense = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    request.getfixturevalue("without_compiler")
    torch.testing.assert_close(x.matmul(dense), x.to_dense() @ dense)
    assert torch.autograd.gradcheck(x.matmul, dense)


@pytest.mark.parametrize("at_once", [1, 1000, plain.AT_ONCE])
def test_select_top(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    rows = RaggedRows(torch.tensor([0, 0, 3, 90, 500, 502]))
    value = torch.randint(-3, 4, (502, 5)).double()
    coefficients = torch.randint(-3, 4, (2, 5)).double().requires_grad_()
    coefficients.data[1, 1] = torch.nan
    expected_position, expected = select_top(value, rows, coefficients, 100)
    expected_grad = torch.autograd.grad(expected[0, :, 1].sum(), coefficients)[0]
    request.getfixturevalue("without_compiler")
    monkeypatch.setattr(plain, "AT_ONCE", at_once)
    position, score = select_top(value, rows, coefficients, 100)
    assert torch.equal(position, expected_position)
    assert torch.equal(score, expected)
    grad = torch.autograd.grad(score[0, :, 1].sum(), coefficients)[0]
    torch.testing.assert_close(grad, expected_grad)


def test_nothing_to_select_from(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("without_compiler")
    rows = RaggedRows(torch.tensor([0, 0, 0]))
    coefficients = torch.ones(2, 3, requires_grad=True)
    position, score = select_top(torch.ones(0, 3), rows, coefficients, 2)
    assert (position == -1).all()
    score.sum().backward()
    assert coefficients.grad is not None
    assert coefficients.grad.eq(0).all()
