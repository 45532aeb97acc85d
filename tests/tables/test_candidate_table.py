import pytest
import scipy.sparse as sp
import torch
from tests.strategies import generic_graph

from asgat.tables.candidate_table import ROUNDING
from asgat.tables.exact_builder import build_exact

ORDER = 3


def shifted(seed: int = 0, num_nodes: int = 20):
    graph = generic_graph(seed, num_nodes)
    return sp.csr_array(graph.laplacian - sp.eye_array(graph.num_nodes))


def test_sizes_and_representation():
    table = build_exact(shifted(), ORDER, candidates=2, cap=3)
    assert table.num_nodes == 20
    assert table.order == ORDER
    assert table.index.numel() == int(table.indptr[-1])
    assert table.candidates_per_node == table.index.numel() / 20
    arrays = (table.indptr, table.index, table.value, table.above, table.below, table.complete)
    assert table.nbytes == sum(a.nbytes for a in arrays)
    per_node = f"{table.candidates_per_node:.1f}"
    assert repr(table) == f"CandidateTable(exact, num_nodes=20, order=3, candidates_per_node={per_node}, dtype=float32)"


@pytest.mark.parametrize(
    ("dtype", "rounding", "underflow"),
    [(torch.float64, 0.0, 0.0), (torch.float32, 2.0**-24, 2.0**-150), (torch.float16, 2.0**-11, 2.0**-25)],
)
def test_stored_values_are_within_the_rounding_the_table_states(dtype, rounding, underflow):
    true = build_exact(shifted(), 8, 4, dtype=torch.float64).value
    table = build_exact(shifted(), 8, 4, dtype=dtype)
    assert table.value.dtype == dtype
    assert ROUNDING[dtype] == (rounding, underflow)
    assert bool(((table.value.double() - true).abs() <= rounding * true.abs() + underflow).all())
    assert table.above.dtype == table.below.dtype == torch.float64


def test_to_moves_everything():
    here = build_exact(shifted(), ORDER, candidates=2)
    assert here.device == torch.device("cpu")
    table = here.to("meta")
    assert table.device == torch.device("meta")
    arrays = (table.indptr, table.index, table.value, table.above, table.below, table.complete)
    assert {a.device.type for a in arrays} == {"meta"}
    assert table.exact
