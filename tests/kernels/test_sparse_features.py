"""SparseFeatures against the dense matrix it stands for."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.kernels.sparse_features import SparseFeatures, features_tensor


def matrix(rows: int, columns: int, density: float = 0.3) -> np.ndarray[Any, np.dtype[np.float64]]:
    rng = np.random.default_rng(rows + 100 * columns)
    return rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)


@given(rows=st.integers(0, 7), columns=st.integers(0, 7), density=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=30, deadline=None)
def test_is_the_matrix_it_was_built_from(rows: int, columns: int, density: float) -> None:
    x = matrix(rows, columns, density)
    for form in (x, torch.from_numpy(x), sp.csr_array(x), sp.coo_array(x)):
        features = SparseFeatures.from_dense(form, dtype=torch.float64)
        assert features.shape == x.shape == (features.size(0), features.size(1))
        assert np.array_equal(features.to_dense().numpy(), x)
        assert features.density == pytest.approx(np.count_nonzero(x) / max(1, x.size))


def test_products_have_gradients_to_the_weight() -> None:
    x = SparseFeatures.from_dense(matrix(6, 5), dtype=torch.float64)
    weight = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(x.linear(weight), x.to_dense() @ weight.t())
    torch.testing.assert_close(x.matmul(weight.t()), x.to_dense() @ weight.t())
    assert torch.autograd.gradcheck(x.linear, weight)


def test_explicit_zeros_and_duplicates_of_a_sparse_matrix_are_merged() -> None:
    x = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    features = SparseFeatures.from_dense(x)
    assert features.value.tolist() == [3.0]
    assert features.to_dense().tolist() == [[0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]


def test_what_it_was_built_from_is_not_changed() -> None:
    x = sp.csr_array(np.eye(3))
    features = SparseFeatures.from_dense(x, dtype=torch.float64)
    features.value.zero_()
    assert x.sum() == 3.0


def test_dropout_thins_the_non_zeros_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x = SparseFeatures.from_dense(np.ones((200, 100)))
    dropped = x.dropout(0.6)
    assert dropped.value.unique().tolist() == pytest.approx([0.0, 2.5])
    assert float(dropped.value.mean()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(x.value, torch.ones_like(x.value))
    assert x.dropout(0.6, training=False) is x
    assert x.dropout(0.0) is x


def test_dropout_reaches_the_gradient() -> None:
    torch.manual_seed(0)
    x = SparseFeatures.from_dense(matrix(20, 10), dtype=torch.float64).dropout(0.5)
    weight = torch.randn(3, 10, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(
        torch.autograd.grad(x.linear(weight).sum(), weight)[0],
        torch.autograd.grad((x.to_dense() @ weight.t()).sum(), weight)[0],
    )


def test_to_changes_dtype() -> None:
    x = SparseFeatures.from_dense(matrix(4, 3))
    assert x.dtype == torch.float32
    assert x.to(dtype=torch.float64).dtype == torch.float64
    assert x.to("cpu").device.type == "cpu"
    assert "[4, 3]" in repr(x)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, torch.from_numpy], ids=["array", "sparse", "tensor"])
@pytest.mark.parametrize(("density", "sparse"), [(0.02, True), (0.5, False)])
def test_form_follows_density(density: float, sparse: bool, form: Any) -> None:
    x = matrix(40, 50, density)
    features = features_tensor(form(x), dtype=torch.float64)
    assert isinstance(features, SparseFeatures) == sparse
    dense = features.to_dense() if isinstance(features, SparseFeatures) else features
    assert np.array_equal(dense.numpy(), x)
    before = dense.clone()
    x[:] = 7.0
    assert torch.equal(dense, before), "nothing is shared"


@pytest.mark.parametrize("x", [np.zeros(3), np.ones((2, 2, 2)), torch.ones(4)], ids=["vector", "cube", "tensor"])
def test_features_of_other_shapes_are_refused(x: Any) -> None:
    with pytest.raises(AsgatError, match=r"must have shape \[N, F\]"):
        features_tensor(x)


def test_the_threshold_is_the_share_of_entries_that_are_stored() -> None:
    x = np.eye(4)
    for form in (x, sp.csr_array(x)):
        assert isinstance(features_tensor(form, threshold=0.26), SparseFeatures)
        assert not isinstance(features_tensor(form, threshold=0.25), SparseFeatures)
    assert isinstance(features_tensor(np.zeros((0, 3))), SparseFeatures), "nothing is stored"


def test_compiles_as_an_argument() -> None:
    x = SparseFeatures.from_dense(matrix(6, 5), dtype=torch.float64)
    weight = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    def layer(x: SparseFeatures, weight: torch.Tensor, training: bool) -> torch.Tensor:
        return x.dropout(0.5, training).linear(weight).relu()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, weight, False), (x.to_dense() @ weight.t()).relu())
    compiled(x, weight, True).sum().backward()
    assert weight.grad is not None


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AsgatError, match=r"\[N, F\]"):
        SparseFeatures.from_dense(np.ones(3))
    with pytest.raises(AsgatError, match="multiplied"):
        SparseFeatures.from_dense(np.ones((2, 3))).matmul(torch.ones(2, 2))
