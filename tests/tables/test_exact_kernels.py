"""The kernels as plain Python, which checks every index, against the compiled ones."""

import numpy as np
import pytest
import torch
from tests.strategies import ZOO, generic_graph
from tests.tables.test_exact_builder import DOUBLE_STAR, WHEEL, shifted

from asgat.tables import exact_kernels as kernels
from asgat.tables.exact_builder import build_exact


@pytest.mark.parametrize("candidates", [1, 3, 50])
@pytest.mark.parametrize("graph", [ZOO["generic"], WHEEL, DOUBLE_STAR, generic_graph(3, 20)])
def test_python_kernels_stay_inside_their_arrays_and_give_the_same(graph, candidates, monkeypatch):
    x = shifted(graph)
    expected = build_exact(x, 4, candidates, cap=2, dtype=torch.float64)
    for name in ("recurrence", "left_out", "gather"):
        monkeypatch.setattr(kernels, name, getattr(getattr(kernels, name), "py_func", getattr(kernels, name)))
    found = build_exact(x, 4, candidates, cap=2, dtype=torch.float64)
    assert torch.equal(found.indptr, expected.indptr)
    assert torch.equal(found.index, expected.index)
    for name in ("value", "above", "below"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
