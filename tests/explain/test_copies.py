import numpy as np

from asgat.explain.copies import SIDES, operator_rows, split_copies
from asgat.graph import Graph

DIRECTED = Graph.from_edges([[0, 1], [1, 2]], 3, directed=True)


def test_a_node_has_a_row_for_each_side():
    rows = operator_rows(DIRECTED, np.array([2, 0]))
    nodes, sides = split_copies(DIRECTED, rows)
    assert rows.tolist() == [4, 5, 0, 1]
    assert nodes.tolist() == [2, 2, 0, 0]
    assert sides is not None
    assert [SIDES[side] for side in sides] == ["out", "in", "out", "in"]
    cover = DIRECTED.double_cover.adjacency.toarray()
    assert cover[operator_rows(DIRECTED, np.array([0]))[0]].nonzero()[0].tolist() == [3], "1 as the target of 0's edge"


def test_a_node_of_an_undirected_graph_is_its_own_row():
    rows = operator_rows(DIRECTED.undirected, np.array([2, 0]))
    nodes, sides = split_copies(DIRECTED.undirected, rows)
    assert nodes.tolist() == rows.tolist() == [2, 0]
    assert sides is None
