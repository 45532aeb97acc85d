import numpy as np
import scipy.sparse as sp
import torch

from asgat.training import matrix_rows
from asgat.training.matrix_rows import MatrixRows

rng = np.random.default_rng(0)
HALF = rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.2)
DENSE = (HALF + HALF.T) / 10
DENSE[7] = DENSE[:, 7] = 0.0
MATRIX = MatrixRows(sp.csr_array(DENSE))


def test_parts_are_those_of_the_dense_matrix():
    rows, columns = torch.tensor([3, 7, 0]), torch.tensor([11, 0, 3, 7, 2])
    assert np.array_equal(MATRIX.part(rows, columns).toarray(), DENSE[rows][:, columns])
    assert np.array_equal(MATRIX.part(columns, rows).toarray(), DENSE[columns][:, rows]), "nothing is left of the first"
    assert MATRIX.part(rows, rows[:0]).shape == (3, 0)
    assert MATRIX.columns(rows).tolist() == [u for v in rows for u in np.flatnonzero(DENSE[v])]
    assert MATRIX.columns(rows[:0]).tolist() == []


def test_polynomials_are_those_of_the_dense_matrix(monkeypatch):
    monkeypatch.setattr(matrix_rows, "ROWS", 5)
    signal, matrix = torch.from_numpy(rng.standard_normal((12, 3))), torch.from_numpy(DENSE)
    expected = [signal, matrix @ signal]
    for _ in range(3):
        expected.append(2 * matrix @ expected[-1] - expected[-2])
    found = [term.clone() for term in MATRIX.polynomials(signal.clone(), torch.empty_like(signal), 4)]
    assert len(found) == 5
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(found, expected, strict=True))
