import numpy as np
import pytest
import scipy.sparse as sp
from tests.tables.test_candidate_table import shifted

from asgat.errors import AsgatError
from asgat.tables.sparse_rows import SparseRows


def test_sparse_rows_are_put_in_order_and_freed_of_zeros():
    messy = sp.csr_array((np.array([1.0, 2.0, 0.0, 3.0]), np.array([1, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 2))
    rows = SparseRows.of(messy)
    assert rows.indices.tolist() == [0, 1, 1]
    assert rows.data.tolist() == [2.0, 1.0, 3.0]
    assert messy.nnz == 4, "what was passed in is left alone"
    with pytest.raises(AsgatError, match="square"):
        SparseRows.of(sp.csr_array((2, 3)))


def test_sparse_rows_that_are_in_order_are_not_copied():
    matrix = shifted()
    matrix.sum_duplicates()
    for kind, name in ((np.int64, "indptr"), (np.int32, "indices")):
        matrix.indptr, matrix.indices = matrix.indptr.astype(kind), matrix.indices.astype(kind)
        rows = SparseRows.of(matrix)
        assert np.shares_memory(rows.data, matrix.data)
        assert np.shares_memory(getattr(rows, name), getattr(matrix, name))
