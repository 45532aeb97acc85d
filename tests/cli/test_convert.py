import json

import numpy as np
import pytest

from asgat.disk.disk_graph import OnDiskGraph


@pytest.fixture(autouse=True)
def files(place):
    (place / "edges.csv").write_text("from,to\n" + "".join(f"{v},{(v + 1) % 40}\n" for v in range(40)))
    np.save("x.npy", np.random.default_rng(0).random((40, 3)).astype(np.float32))
    (place / "y.csv").write_text("\n".join(str(v % 2) for v in range(40)))
    np.save("parts.npy", np.tile([1, 2, 3, 1], 10))


CONVERT = ["convert", "edges.csv", "graph", "--features", "x.npy", "--labels", "y.csv"]


def test_files_become_a_graph_that_ranks_train_on(asgat, place, one_rank):
    code, _, errors = asgat(*CONVERT, "--splits", "parts.npy", "--json", "j", "--order", "rcm", "--name", "[bold]ring")
    assert code == 0, errors
    graph = OnDiskGraph(place / "graph")
    assert (graph.name, graph.num_nodes, graph.num_entries, graph.num_classes) == ("[bold]ring", 40, 80, 2)
    assert np.array_equal(graph.features(0, 40), np.load("x.npy")[graph.original_nodes()])
    written = json.loads((place / "j").read_text())
    assert (written["nodes"], written["entries"], written["splits"], written["order"]) == (40, 80, 1, "rcm")
    command = ["train", "graph", "--model", "asgat-cheb", "--splits", "0", "--set", "epochs=2", "--set", "form=table"]
    code, output, errors = asgat(*command, "--distributed", "--out", "run")
    assert code == 0, errors
    assert json.loads((place / "run" / "result.json").read_text())["dataset"] == "[bold]ring"
    assert "asgat-cheb on [bold]ring: 40 nodes" in output
    assert "Test scores on [bold]ring" in output


def test_one_process_is_told_how_to_train_on_a_folder(asgat, refused):
    asgat(*CONVERT, "--splits", "parts.npy")
    sentence = refused("train", "graph", "--model", "asgat-cheb")
    assert "graph is a graph on disk" in sentence
    assert "torchrun --nproc-per-node 2 -m asgat train graph --distributed" in sentence
    assert "`asgat fit`" in sentence


def test_directions_are_kept_where_they_are_asked_for(asgat, place, one_rank):
    code, output, errors = asgat(*CONVERT, "--splits", "parts.npy", "--directed", "--json", "j")
    assert code == 0, errors
    assert "Directed graph on disk" in output
    graph = OnDiskGraph(place / "graph")
    assert (graph.directed, graph.num_entries) == (True, 40)
    assert json.loads((place / "j").read_text())["directed"] is True
    number = np.argsort(graph.original_nodes())
    adjacency = graph.to_dataset().graph.adjacency.toarray()
    assert all(adjacency[number[v], number[(v + 1) % 40]] == 1 for v in range(40))
    command = ["train", "graph", "--model", "asgat-plus", "--splits", "0", "--set", "epochs=2", "--set", "form=table"]
    code, output, errors = asgat(*command, "--distributed", "--out", "run")
    assert code == 0, errors
    assert "asgat-plus on graph: 40 nodes, 40 entries" in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--order", "best"], "--order must be one of"),
        (["--self-loops", "some"], "--self-loops must be"),
        (["--splits", "nowhere.npy"], "nowhere.npy is not a file"),
    ],
)
def test_bad_options_are_refused(refused, options, words):
    assert words in refused(*CONVERT, *options)


@pytest.mark.parametrize("edges", ["absent.csv", "x.parquet", "."])
def test_an_edge_list_that_is_none_is_refused(refused, edges):
    assert f"{edges} is not an edge list" in refused("convert", edges, *CONVERT[2:])


TABLE = ["--table", "--set", "form=table", "--set", "order=3", "--set", "builder=truncated"]


def test_a_table_is_stored_next_to_the_graph_and_used(asgat, place, one_rank, monkeypatch):
    monkeypatch.setattr("asgat.tables.table_cache.WORTH_SECONDS", 0.0)
    code, output, errors = asgat(*CONVERT, "--splits", "parts.npy", *TABLE, "--json", "j")
    assert code == 0, errors
    assert "candidates per node" in output
    assert json.loads((place / "j").read_text())["candidates_per_node"] > 1
    (table,) = (place / "graph" / "tables").iterdir()
    code, output, errors = asgat(*CONVERT, "--splits", "parts.npy", *TABLE)  # again
    assert (code, "graph holds this graph already." in output) == (0, True), errors
    monkeypatch.setattr("asgat.tables.table_settings.TableSettings.build", None)
    options = ["--splits", "0", *TABLE[1:], "--set", "epochs=1", "--distributed", "--out", "run"]
    code, _, errors = asgat("train", "graph", "--model", "asgat-cheb", *options)
    assert code == 0, errors
    damaged = table / "value.bin"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    monkeypatch.undo()
    monkeypatch.chdir(place)
    code, _, errors = asgat(*CONVERT, "--splits", "parts.npy", *TABLE)
    assert code == 0
    assert "A stored table is built again" in errors
    assert "value.bin is not what was written" in errors


def test_settings_without_a_table_are_refused(refused):
    assert "--set is for the table" in refused(*CONVERT, "--set", "order=3")


def test_an_existing_folder_of_other_files_is_left_alone(asgat, refused, place):
    asgat(*CONVERT)
    (place / "y.csv").write_text("\n".join(str(v % 2) for v in range(40)) + "\n")
    assert "graph exists; choose another folder" in refused(*CONVERT, *TABLE)
