import pytest
import torch

from asgat.data import contextual_sbm
from asgat.errors import AsgatError
from asgat.tables.table_settings import TableSettings

GRAPH = contextual_sbm(num_nodes=60, mean_degree=4.0, seed=0).graph


def test_an_unknown_builder_is_refused():
    with pytest.raises(AsgatError, match="builder must be exact or truncated, not 'fast'"):
        TableSettings(3, 4, builder="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("builder", ["exact", "truncated"])
def test_parts_of_a_prepared_matrix_are_the_rows_of_the_whole(builder):
    settings = TableSettings(4, 5, builder=builder, storage="float16")
    whole, prepared = settings.build(GRAPH.shifted), settings.prepare(GRAPH.shifted)
    parts = whole.concatenate([settings.build(prepared, range(first, first + 20)) for first in (0, 20, 40)])
    assert torch.equal(parts.index, whole.index)
    assert torch.equal(parts.value, whole.value)
    assert parts.value.dtype == torch.float16


def test_a_smaller_neighbourhood_gives_a_coarser_table():
    x = torch.from_numpy(GRAPH.shifted.toarray())
    terms = [torch.eye(60, dtype=torch.float64), x]
    for _ in range(3):
        terms.append(2 * x @ terms[-1] - terms[-2])

    def error(neighbourhood):
        table = TableSettings(4, 5, builder="truncated", neighbourhood=neighbourhood).build(GRAPH.shifted)
        row = torch.arange(60).repeat_interleave(table.indptr.diff())
        true = torch.stack([term[row, table.index.long()] for term in terms], dim=1)
        return float((table.value.double() - true).abs().max())

    assert error(512) < 1e-6 < 1e-3 < error(6)


def test_a_row_takes_no_more_than_the_settings_say():
    for settings in (TableSettings(4, 5), TableSettings(4, 5, builder="truncated", storage="float16")):
        table = settings.build(GRAPH.shifted)
        neighbours = 0 if settings.builder == "truncated" else GRAPH.num_entries * (4 + 4 * 5)
        assert table.nbytes <= settings.bytes_per_row * GRAPH.num_nodes + neighbours + 500


def test_settings_that_do_not_matter_are_left_out():
    assert "cap" not in TableSettings(3, 4, builder="truncated").to_dict()
    assert "neighbourhood" not in TableSettings(3, 4).to_dict()
