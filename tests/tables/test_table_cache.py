import json
import logging
import multiprocessing
import os
from dataclasses import replace
from typing import Any

import pytest
import torch

from asgat.data import contextual_sbm
from asgat.errors import AsgatError
from asgat.files.lock import locked
from asgat.tables import TableOperator, table_cache
from asgat.tables.table_cache import TableCache, TableRecipe, cached_table, caches_for, tables_next_to
from asgat.tables.table_settings import TableSettings

GRAPH = contextual_sbm(num_nodes=300, mean_degree=4.0, seed=0).graph
SETTINGS = TableSettings(3, 4, builder="truncated")
RECIPE = TableRecipe(GRAPH.digest, 300, GRAPH.num_entries, SETTINGS)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache that stores even small tables, in parts of 64 rows."""
    monkeypatch.setattr(table_cache, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(table_cache, "PART_SECONDS", 0.0)
    return TableCache(tmp_path / "cache", 10**9)


def build_rows(rows, progress=None):
    return SETTINGS.build(GRAPH.shifted, rows)


class Counted:
    """Builds rows and remembers which; ends after ``most`` parts as if it was killed."""

    def __init__(self, most=None):
        self.rows, self.most = [], most

    def __call__(self, rows, progress):
        if self.most is not None and len(self.rows) >= self.most:
            raise KeyboardInterrupt
        self.rows.append(rows)
        return build_rows(rows)


def test_a_second_operator_finds_the_table_of_the_first(cache, monkeypatch):
    options: Any = {"order": 3, "candidates": 4, "builder": "truncated"}
    plain = TableOperator(GRAPH, **options)
    first = TableOperator(GRAPH, **options, caches=[cache])
    monkeypatch.setattr(TableSettings, "build", None)  # nothing is built
    second = TableOperator(GRAPH, **options, caches=[cache])
    for operator in (first, second):
        assert torch.equal(operator.table.index, plain.table.index)
        assert torch.equal(operator.table.value, plain.table.value)


def test_a_table_that_takes_no_time_is_not_stored(tmp_path):
    held = TableCache(tmp_path / "cache", 10**9)
    cached_table(RECIPE, lambda: GRAPH.shifted, [held])
    assert not held.folder.exists()


@pytest.mark.parametrize(
    "other",
    [
        replace(RECIPE, graph="0" * 64),
        replace(RECIPE, settings=replace(SETTINGS, order=4)),
        replace(RECIPE, settings=replace(SETTINGS, storage="float16")),
        replace(RECIPE, settings=replace(SETTINGS, neighbourhood=7)),
        replace(RECIPE, settings=replace(SETTINGS, builder="exact")),
        replace(RECIPE, lambda_max=1.9),
        replace(RECIPE, rows=range(5)),
    ],
)
def test_what_a_table_is_made_of_is_its_name(other):
    assert other.name != RECIPE.name
    assert replace(other).name == other.name


def test_the_device_matters_to_an_exact_table_only():
    exact = replace(RECIPE, settings=replace(SETTINGS, builder="exact"))
    assert replace(RECIPE, device="cuda").name == RECIPE.name
    assert replace(exact, device="cuda").name != exact.name


def test_the_parts_are_all_rows(monkeypatch):
    monkeypatch.setattr(table_cache, "PART_SECONDS", 0.02)
    assert [v for part in replace(RECIPE, rows=range(10, 290)).parts() for v in part] == list(range(10, 290))


def test_a_build_that_was_killed_goes_on(cache):
    killed, again, seen = Counted(most=2), Counted(), []
    with pytest.raises(KeyboardInterrupt):
        cache.build(RECIPE, killed)
    assert [entry.finished for entry in cache.entries()] == [False]
    table = cache.build(RECIPE, again, lambda done, rows: seen.append((done, rows)))
    assert killed.rows + again.rows == RECIPE.parts()
    assert seen[-1] == (300, 300)
    assert torch.equal(table.value, build_rows(None).value)
    assert [entry.finished for entry in cache.entries()] == [True]


def test_a_damaged_part_of_a_killed_build_is_built_again(cache, caplog):
    with pytest.raises(KeyboardInterrupt):
        cache.build(RECIPE, Counted(most=3))
    (part,) = cache.folder.glob("*/part-00001/value.bin")
    part.write_bytes(b"\0" * part.stat().st_size)
    again = Counted()
    with caplog.at_level(logging.WARNING):
        table = cache.build(RECIPE, again)
    assert "A part of a stored table is built again" in caplog.text
    assert again.rows == [*RECIPE.parts()[3:], RECIPE.parts()[1]]
    assert torch.equal(table.value, build_rows(None).value)


def test_a_damaged_table_is_reported_and_built_again(cache, caplog):
    cache.build(RECIPE, build_rows)
    path = cache.folder / RECIPE.name / "value.bin"
    content = bytearray(path.read_bytes())
    content[100] ^= 255
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        table = cached_table(RECIPE, lambda: GRAPH.shifted, [cache])
    assert "A stored table is built again" in caplog.text
    assert "value.bin is not what was written" in caplog.text
    assert torch.equal(table.value, build_rows(None).value)
    assert torch.equal(cache.find(RECIPE).value, table.value)


def build_in_process(folder, file):
    table_cache.PART_SECONDS = 0.0
    counted = Counted()
    table = TableCache(folder, 10**9).build(RECIPE, counted)
    file.write_text(json.dumps([table.index.numel(), [rows.start for rows in counted.rows]]))


def test_two_processes_share_the_parts(cache, tmp_path):
    context, files = multiprocessing.get_context("fork"), [tmp_path / "a.json", tmp_path / "b.json"]
    workers = [context.Process(target=build_in_process, args=(cache.folder, file)) for file in files]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    (first, a), (second, b) = (json.loads(file.read_text()) for file in files)
    assert first == second == build_rows(None).index.numel()
    assert sorted(a + b) == [rows.start for rows in RECIPE.parts()]


def test_a_rank_finds_its_rows_in_the_whole_table(cache):
    cache.build(RECIPE, build_rows)
    rows = cache.find(replace(RECIPE, rows=range(100, 200)))
    assert torch.equal(rows.value, build_rows(range(100, 200)).value)
    assert cache.find(replace(RECIPE, graph="0" * 64)) is None


def test_the_rows_of_a_rank_are_stored_alone(cache):
    part = replace(RECIPE, rows=range(100, 200))
    first = cached_table(part, lambda: GRAPH.shifted, [cache])
    assert torch.equal(cache.find(part).value, first.value)
    assert cache.find(RECIPE) is None


def test_what_was_used_longest_ago_is_removed_first(cache):
    recipes = [replace(RECIPE, settings=replace(SETTINGS, order=order)) for order in (2, 3, 4)]
    for age, recipe in enumerate(recipes[:2]):
        cache.build(recipe, lambda rows, _, s=recipe.settings: s.build(GRAPH.shifted, rows))
        os.utime(cache.folder / recipe.name / "header.json", (age, age))
    cache.find(recipes[0])  # used again
    cache.limit = sum(entry.bytes for entry in cache.entries()) + 10_000
    cache.build(recipes[2], lambda rows, _: recipes[2].settings.build(GRAPH.shifted, rows))
    assert {entry.path.name for entry in cache.entries()} == {recipes[0].name, recipes[2].name}


def test_a_table_beyond_the_limit_stays_in_memory(cache):
    cache.limit = 0
    table = cached_table(RECIPE, lambda: GRAPH.shifted, [cache])
    assert table.num_nodes == 300
    assert not cache.folder.exists()


def test_a_build_in_progress_is_not_removed(cache):
    with pytest.raises(KeyboardInterrupt):
        cache.build(RECIPE, Counted(most=1))
    (building,) = cache.folder.iterdir()
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()

    def hold():
        with locked(building / "claim-00001"):
            ready.set()
            done.wait()

    holder = context.Process(target=hold)
    holder.start()
    ready.wait()
    assert cache.clear() == 0
    done.set()
    holder.join()
    assert cache.clear() > 0
    assert cache.entries() == []


def test_a_folder_that_cannot_be_written_is_reported_and_the_table_built_in_memory(cache, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    held = TableCache(tmp_path / "file" / "below", 10**9)
    with caplog.at_level(logging.WARNING):
        assert cached_table(RECIPE, lambda: GRAPH.shifted, [held]).num_nodes == 300
    assert "Tables are not stored" in caplog.text


def test_the_tables_next_to_a_graph_is_found_first(cache, tmp_path):
    place = tables_next_to(tmp_path / "graph")
    place.build(RECIPE, build_rows)
    cached_table(RECIPE, lambda: pytest.fail("nothing is built"), [place, cache])
    assert [c.folder for c in caches_for(tmp_path / "graph")] == [place.folder, TableCache().folder]


def test_the_folder_and_the_limit_are_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("ASGAT_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("ASGAT_CACHE_GB", "1.5")
    assert (TableCache().folder, TableCache().limit) == (tmp_path / "here", 1_500_000_000)
    monkeypatch.delenv("ASGAT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert TableCache().folder == tmp_path / "asgat" / "tables"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert TableCache().folder.parts[-3:] == (".cache", "asgat", "tables")
    monkeypatch.setenv("ASGAT_CACHE_GB", "much")
    with pytest.raises(AsgatError, match="ASGAT_CACHE_GB must be a number of gigabytes, such as 20, not 'much'"):
        TableCache()


def test_progress_is_that_of_all_rows_also_inside_a_part(cache):
    seen: list[tuple[int, int]] = []

    def build(rows, progress):
        progress(len(rows) // 2, len(rows))
        return build_rows(rows)

    cache.build(RECIPE, build, lambda *now: seen.append(now))
    done = [now for now, _ in seen]
    assert done[:4] == [32, 64, 96, 128]
    assert sorted(set(done)) == sorted(set(done[: 2 * len(RECIPE.parts())]))
    assert {rows for _, rows in seen} == {300}
