"""The share of edges that also run the other way, counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import edge_lists

from asgat.tabular.direction import FEWEST, reciprocal_share


@given(edge_lists(max_nodes=12), st.booleans())
def test_it_is_the_share_of_distinct_edges_between_different_nodes(edges, listed_once):
    pairs = {(u, v) for u, v in edges.ends.T.tolist() if u != v}
    share = reciprocal_share(edges.ends, edges.num_nodes, listed_once)
    if len(pairs) < FEWEST or (listed_once and all(u < v for u, v in pairs)):
        assert share is None
    else:
        assert share == pytest.approx(sum((v, u) in pairs for u, v in pairs) / len(pairs))


def test_a_list_with_the_lower_node_first_may_be_one_of_undirected_edges():
    line = np.stack([np.arange(20), np.arange(1, 21)])
    assert reciprocal_share(line, 21, listed_once=True) is None
    assert reciprocal_share(line[::-1], 21, listed_once=True) == 0.0
    assert reciprocal_share(line, 21) == 0.0
