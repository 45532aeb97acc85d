from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.tables.test_exact_builder import shifted

import asgat.tables.truncated_builder as builder
from asgat.graph import Graph
from asgat.tables import truncated_kernels as kernels
from asgat.tables.truncated_builder import build_truncated


def uncompile(patched):
    """Replace the kernels by plain Python, in which fields of a record are not attributes."""
    for name, kernel in list(vars(kernels).items()):
        if hasattr(kernel, "py_func"):
            patched.setattr(kernels, name, kernel.py_func)
    run = kernels.neighbourhoods

    def neighbourhoods(record, *arrays):
        run([SimpleNamespace(**dict(zip(record.dtype.names, row, strict=True))) for row in record], *arrays)

    patched.setattr(kernels, "neighbourhoods", neighbourhoods)


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar multiply")  # of a hash
@pytest.mark.parametrize("fanout", [1, 2, 256])
def test_python_kernels_stay_inside_their_arrays_and_give_the_same(fanout, monkeypatch):
    """Compiled code does not check indices; Python does."""
    monkeypatch.setattr(builder, "fanout_for", lambda candidates: fanout)
    rng = np.random.default_rng(2)
    spokes = np.stack([np.repeat([0, 1], 23), np.tile(range(1, 24), 2)])
    x = shifted(Graph.from_edges(np.concatenate([rng.integers(0, 24, (2, 40)), spokes], axis=1), 24), 1.7)
    complete = shifted(Graph.from_edges(np.argwhere(np.triu(np.ones((9, 9)), 1)).T))
    for matrix in (x, complete):
        expected = build_truncated(matrix, 4, 6, keep=matrix.shape[0], dtype=torch.float64)
        with monkeypatch.context() as patched:
            uncompile(patched)
            found = build_truncated(matrix, 4, 6, keep=matrix.shape[0], dtype=torch.float64)
        assert torch.equal(found.index, expected.index)
        torch.testing.assert_close(found.value, expected.value, atol=1e-13, rtol=0)
