import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import edge_lists

from asgat.disk.edge_sorter import EdgeSorter, row_bounds
from asgat.errors import AsgatError


@settings(max_examples=30)
@given(edge_lists(), st.integers(64, 2000), st.booleans())
def test_the_rows_are_those_of_the_graph_whatever_the_buckets(held, memory, directed):
    truth = held.graph(directed=directed).adjacency
    with tempfile.TemporaryDirectory() as folder:
        sorter = EdgeSorter(Path(folder), held.num_nodes, memory, directed)
        for half in (slice(0, held.ends.shape[1] // 2), slice(held.ends.shape[1] // 2, None)):
            sorter.add(held.ends[0, half], held.ends[1, half], held.weight[half])
        indptr, indices, weights = sorter.write()
        assert np.array_equal(indptr, truth.indptr)
        assert np.array_equal(indices, truth.indices)
        assert np.array_equal(np.ones(len(indices)) if weights is None else weights, truth.data)
        assert sorted(path.name for path in Path(folder).iterdir()) == [
            "count.npy",
            "degree.bin",
            "indices.bin",
            "weight.bin",
        ]


def test_memory_bounds_the_buckets(tmp_path):
    ends = np.random.default_rng(0).integers(0, 1000, size=(2, 5000))
    sorter = EdgeSorter(tmp_path, 1000)
    sorter.add(*ends)
    bounds = row_bounds(sorter.count + 1, 1000)
    entries = np.add.reduceat(sorter.count + 1, bounds[:-1])
    assert entries.max() <= 1000
    assert entries[:-1].min() > 900, "and they are not needlessly small"
    assert bounds[0] == 0
    assert bounds[-1] == 1000


def test_numbers_of_nodes_fit_32_bits(tmp_path):
    with pytest.raises(AsgatError, match="at most 2,147,483,647 nodes, not 2,147,483,648"):
        EdgeSorter(tmp_path, 2**31)
