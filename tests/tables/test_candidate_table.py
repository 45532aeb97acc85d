import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tests.strategies import generic_graph

from asgat.errors import AsgatError
from asgat.tables.candidate_table import ROUNDING, CandidateTable
from asgat.tables.exact_builder import build_exact

ORDER = 3


def shifted(seed: int = 0, num_nodes: int = 20):
    graph = generic_graph(seed, num_nodes)
    return sp.csr_array(graph.laplacian - sp.eye_array(graph.num_nodes))


def rows_of(table: CandidateTable, v: int):
    entries = slice(int(table.indptr[v]), int(table.indptr[v + 1]))
    return table.index[entries].tolist(), table.value[entries], table.above[v], table.below[v], bool(table.complete[v])


def assert_same_row(one: CandidateTable, v: int, two: CandidateTable, u: int) -> None:
    first, second = rows_of(one, v), rows_of(two, u)
    assert first[0] == second[0]
    assert first[4] == second[4]
    for a, b in zip(first[1:4], second[1:4], strict=True):
        assert torch.equal(a, b)


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


def test_replace_rows_takes_the_other_tables_rows_and_keeps_the_rest():
    narrow = build_exact(shifted(), ORDER, candidates=1, cap=1)
    rows = [7, 2, 19]
    wide = build_exact(shifted(), ORDER, candidates=20, rows=rows)
    table = narrow.replace_rows(rows, wide)
    assert table.exact
    for v in range(20):
        if v in rows:
            assert_same_row(table, v, wide, rows.index(v))
        else:
            assert_same_row(table, v, narrow, v)


def test_replacing_no_row_or_every_row():
    table = build_exact(shifted(), ORDER, candidates=2)
    for v in (0, 19):
        one = build_exact(shifted(), ORDER, candidates=9, rows=[v])
        assert_same_row(table.replace_rows([v], one), v, one, 0)
    none = build_exact(shifted(), ORDER, candidates=2, rows=[])
    assert torch.equal(table.replace_rows([], none).value, table.value)
    other = build_exact(shifted(1), ORDER, candidates=3)
    assert torch.equal(table.replace_rows(np.arange(20), other).value, other.value)


def test_replace_rows_refuses_what_does_not_fit():
    table = build_exact(shifted(), ORDER, candidates=2)
    two = build_exact(shifted(), ORDER, candidates=2, rows=[0, 1])
    with pytest.raises(AsgatError, match="same order and dtype"):
        table.replace_rows([0, 1], build_exact(shifted(), ORDER + 1, 2, rows=[0, 1]))
    with pytest.raises(AsgatError, match="same order and dtype"):
        table.replace_rows([0, 1], build_exact(shifted(), ORDER, 2, rows=[0, 1], dtype=torch.float64))
    with pytest.raises(AsgatError, match="2 numbers, 1 different"):
        table.replace_rows([1, 1], two)
    with pytest.raises(AsgatError, match="1 numbers"):
        table.replace_rows([1], two)
    with pytest.raises(AsgatError, match="range over 3 to 20"):
        table.replace_rows([3, 20], two)


def test_to_moves_everything():
    here = build_exact(shifted(), ORDER, candidates=2)
    assert here.device == torch.device("cpu")
    table = here.to("meta")
    assert table.device == torch.device("meta")
    arrays = (table.indptr, table.index, table.value, table.above, table.below, table.complete)
    assert {a.device.type for a in arrays} == {"meta"}
    assert table.exact
