import json

from asgat.cli.cache import graph_text, settings_text
from asgat.data import contextual_sbm
from asgat.tables import table_cache
from asgat.tables.table_cache import TableCache, TableRecipe
from asgat.tables.table_settings import TableSettings


def test_tables_are_listed_and_removed(asgat, tmp_path, monkeypatch):
    folder = tmp_path / "tables"
    monkeypatch.setenv("ASGAT_CACHE_DIR", str(folder))
    assert "There are no candidate tables in" in asgat("cache")[1]
    graph = contextual_sbm(num_nodes=100, mean_degree=4.0, seed=0).graph
    settings = TableSettings(3, 4, builder="truncated")
    recipe = TableRecipe(graph.digest, 100, graph.num_entries, settings)
    TableCache().build(recipe, lambda rows, _: settings.build(graph.shifted, rows))
    code, output, _ = asgat("cache", "--json", tmp_path / "out.json")
    assert code == 0
    for text in (recipe.name[:8], f"100 nodes, {graph.num_entries} entries", "order 3", "0.0 of 20 GB are used"):
        assert text in output
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert (row["nodes"], row["order"], row["finished"]) == (100, 3, True)
    assert f"0.0 GB removed from {folder}" in asgat("cache", "--clear")[1]
    assert list(folder.iterdir()) == []


def test_rows_of_a_rank_and_unknown_entries_are_described(asgat, tmp_path, monkeypatch):
    assert graph_text({"nodes": 2000, "entries": 10, "rows": [0, 1000]}) == "2,000 nodes, 10 entries, rows 0 to 999"
    assert (
        settings_text({"builder": "exact", "order": 3, "storage": "float32"})
        == "builder exact, order 3, storage float32"
    )
    monkeypatch.setenv("ASGAT_CACHE_DIR", str(tmp_path))
    (tmp_path / "broken").mkdir()
    (tmp_path / f"killed{table_cache._BUILDING}").mkdir()
    output = asgat("cache")[1]
    assert "unknown" in output
    assert "unfinished" in output
