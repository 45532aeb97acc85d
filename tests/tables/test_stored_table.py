import json

import pytest
import torch

from asgat.data import contextual_sbm
from asgat.tables import CandidateTable
from asgat.tables.stored_table import DamagedTableError, StoredTable, join_tables, read_table, write_table
from asgat.tables.table_settings import TableSettings

GRAPH = contextual_sbm(num_nodes=50, mean_degree=4.0, seed=0).graph
NAMES = ("indptr", "index", "value", "above", "below", "complete")


def same(a: CandidateTable, b: CandidateTable) -> bool:
    close = [torch.equal(getattr(a, name).nan_to_num(7.0), getattr(b, name).nan_to_num(7.0)) for name in NAMES]
    return all(close) and a.exact == b.exact and a.value.dtype == b.value.dtype


@pytest.fixture(params=["exact", "truncated"])
def settings(request):
    return TableSettings(3, 4, builder=request.param, storage="float16")


def test_what_is_read_is_what_was_written(settings, tmp_path):
    table = settings.build(GRAPH.shifted)
    write_table(tmp_path / "t", table, {"nodes": 50})
    assert same(read_table(tmp_path / "t"), table)
    assert StoredTable.read(tmp_path / "t").about == {"nodes": 50}
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_parts_are_joined_in_order_and_rows_are_read_alone(settings, tmp_path):
    table = settings.build(GRAPH.shifted)
    bounds = [range(20), range(20, 33), range(33, 50)]
    for number, rows in enumerate(bounds):
        write_table(tmp_path / str(number), settings.build(GRAPH.shifted, rows), {})
    join_tables(tmp_path / "all", [tmp_path / str(i) for i in range(3)], {})
    assert same(read_table(tmp_path / "all"), table)
    assert same(read_table(tmp_path / "all", range(15, 40)), settings.build(GRAPH.shifted, range(15, 40)))


def test_a_table_without_entries_is_stored(tmp_path):
    table = TableSettings(3, 4).build(GRAPH.shifted, range(0))
    write_table(tmp_path / "t", table, {})
    assert read_table(tmp_path / "t").num_nodes == 0


@pytest.mark.parametrize("name", ["count", "index", "value", "complete"])
def test_a_changed_byte_is_noticed(settings, tmp_path, name):
    write_table(tmp_path / "t", settings.build(GRAPH.shifted), {})
    path = tmp_path / "t" / f"{name}.bin"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedTableError, match=rf"damaged: {name}\.bin is not what was written"):
        read_table(tmp_path / "t")


def test_rows_are_checked_with_the_parts_that_hold_them(settings, tmp_path):
    for number, rows in enumerate([range(25), range(25, 50)]):
        write_table(tmp_path / str(number), settings.build(GRAPH.shifted, rows), {})
    join_tables(tmp_path / "all", [tmp_path / "0", tmp_path / "1"], {})
    path = tmp_path / "all" / "value.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\x77")
    read_table(tmp_path / "all", range(25))
    with pytest.raises(DamagedTableError):
        read_table(tmp_path / "all", range(20, 30))


@pytest.mark.parametrize("change", ["cut", "longer", "missing", "header", "version", "crc", "storage", "negative"])
def test_damage_is_noticed(settings, tmp_path, change):
    folder = tmp_path / "t"
    write_table(folder, settings.build(GRAPH.shifted), {})
    value, header = folder / "value.bin", folder / "header.json"
    held = json.loads(header.read_text())
    if change == "cut":
        value.write_bytes(value.read_bytes()[:-2])
    elif change == "longer":
        value.write_bytes(value.read_bytes() + b"0")
    elif change == "missing":
        value.unlink()
    elif change == "header":
        header.write_text("{")
    elif change == "version":
        header.write_text(json.dumps({**held, "version": 99}))
    elif change == "crc":
        del held["parts"][0]["crc"]["value"]
        header.write_text(json.dumps(held))
    elif change == "storage":
        header.write_text(json.dumps({**held, "storage": "int8"}))
    else:
        held["parts"][0]["rows"] = -1
        header.write_text(json.dumps(held))
    with pytest.raises(DamagedTableError, match="is damaged"):
        read_table(folder)


def test_a_damaged_part_is_named_when_parts_are_joined(settings, tmp_path):
    for number, rows in enumerate([range(25), range(25, 50)]):
        write_table(tmp_path / str(number), settings.build(GRAPH.shifted, rows), {})
    (tmp_path / "1" / "index.bin").write_bytes(b"")
    with pytest.raises(DamagedTableError) as caught:
        join_tables(tmp_path / "all", [tmp_path / "0", tmp_path / "1"], {})
    assert caught.value.folder == tmp_path / "1"
    assert not (tmp_path / "all").exists()
