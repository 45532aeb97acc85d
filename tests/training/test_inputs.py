import dataclasses

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tests.training.tiny import quick, tiny_dataset

from asgat.data import load_dataset
from asgat.filters import HeatFilter
from asgat.graph.knn_edges import add_knn_edges
from asgat.nn.registry import make_config
from asgat.training.inputs import graph_for, make_inputs, normalise_rows

CPU = torch.device("cpu")


@settings(deadline=None, max_examples=60)
@given(
    arrays(
        np.float32,
        array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(-100, 100, width=32).map(lambda v: 0.0 if abs(v) < 1e-3 else v),
    )
)
def test_rows_sum_to_one_in_absolute_value_and_keep_their_direction(x):
    before = x.copy()
    rows = normalise_rows(x)
    total = np.abs(x).sum(axis=1)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.abs(rows).sum(axis=1), (total > 0).astype(float), rtol=1e-5)
    np.testing.assert_allclose(rows * total[:, None], x, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(x, before)


def test_rows_of_zeros_stay():
    x = np.array([[0, 0], [3, -1]], dtype=np.float32)
    assert normalise_rows(x).tolist() == [[0, 0], [0.75, -0.25]]


def test_inputs_follow_the_settings():
    karate = load_dataset("karate")
    dataset = dataclasses.replace(karate, x=3 * karate.x)
    plain, kept = make_inputs(dataset, "sage", quick(), CPU)
    assert torch.equal(plain.to_dense(), torch.from_numpy(dataset.x))
    scaled, _ = make_inputs(dataset, "sage", quick(normalize_features=True), CPU)
    assert torch.equal(scaled.to_dense(), torch.from_numpy(karate.x))
    _, looped = make_inputs(dataset, "sage", quick(self_loops="add"), CPU)
    assert kept.value.numel() == karate.graph.num_entries
    assert looped.value.numel() == karate.graph.num_entries + 34
    assert len(make_inputs(dataset, "mlp", quick(), CPU)) == 1


def test_inputs_are_made_from_the_graph_with_knn_edges():
    data = tiny_dataset()
    plain, joined = (make_config("asgat-plus", form="dense", similar=number, similar_weight=0.7) for number in (0, 2))
    expected = add_knn_edges(data.graph, data.x, 2, 0.7)
    assert expected.num_entries > data.graph.num_entries
    assert graph_for(data, joined).num_entries == expected.num_entries
    assert graph_for(data, plain).num_entries == data.graph.num_entries
    assert graph_for(data, make_config("gcn")).num_entries == data.graph.num_entries
    other = dataclasses.replace(data, graph=expected)
    for config in (joined, joined.replace(adjacency=True)):
        one, two = (
            make_inputs(d, "asgat-plus", c, CPU) for d, c in ((data, config), (other, config.replace(similar=0)))
        )
        torch.testing.assert_close(one[0].to_dense(), two[0].to_dense())
        torch.testing.assert_close(one[1].scores(HeatFilter(1))[1], two[1].scores(HeatFilter(1))[1])
