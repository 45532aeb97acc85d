import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import edge_lists

from asgat.disk.edge_sorter import EdgeSorter


@settings(max_examples=30)
@given(edge_lists(), st.integers(64, 2000), st.booleans())
def test_the_rows_are_those_of_the_graph_whatever_the_buckets(held, memory, size_known):
    truth = held.graph().adjacency
    with tempfile.TemporaryDirectory() as folder:
        sorter = EdgeSorter(Path(folder), held.num_nodes if size_known else None, memory)
        for half in (slice(0, held.ends.shape[1] // 2), slice(held.ends.shape[1] // 2, None)):
            sorter.add(held.ends[0, half], held.ends[1, half], held.weight[half])
        indptr_file, indices_file, weight_file = sorter.write()
        indptr, indices = np.load(indptr_file), np.load(indices_file)
        n = len(indptr) - 1
        assert n <= held.num_nodes
        assert np.array_equal(indptr, truth.indptr[: n + 1])
        assert np.array_equal(indices, truth.indices)
        weights = np.ones(len(indices)) if weight_file is None else np.load(weight_file)
        assert np.array_equal(weights, truth.data)
        assert sorted(path.suffix for path in Path(folder).iterdir()) == [".npy"] * (2 + (weight_file is not None))


def test_memory_bounds_the_buckets(tmp_path):
    ends = np.random.default_rng(0).integers(0, 1000, size=(2, 5000))
    sorter = EdgeSorter(tmp_path, 1000, memory=64 * 1000)
    sorter.add(*ends)
    bounds = sorter._buckets()
    entries = np.add.reduceat(sorter.count + 1, bounds[:-1])
    assert entries.max() <= 1000
    assert entries[:-1].min() > 900, "and they are not needlessly small"
    assert bounds[0] == 0
    assert bounds[-1] == 1000
