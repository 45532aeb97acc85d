"""``asgat explain`` and ``asgat report`` as a user runs them."""

import json
import typing

import numpy as np
import pytest

from asgat.config import Channels
from asgat.data import load_dataset
from asgat.estimator.classifier import ASGATClassifier
from asgat.graph import Graph
from asgat.nn.registry import make_config
from asgat.training.inputs import graph_for
from asgat.training.runner import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    config = make_config("asgat-cheb", epochs=3, hidden=4, heads=2, k=4, order=5)
    run(load_dataset("karate"), "asgat-cheb", config, runs=[0], out=path)
    return path


@pytest.fixture
def call(asgat):
    """A function that runs a command which must succeed and returns what it printed."""

    def call(*arguments):
        code, output, errors = asgat(*arguments)
        assert code == 0, errors
        return output

    return call


def test_explain_prints_a_table_and_writes_the_same(call, trained, tmp_path):
    output = call("explain", trained, "--node", 7, "--top", 0, "--json", tmp_path / "out.json")
    held = json.loads((tmp_path / "out.json").read_text())
    assert held["node"]["id"] == 7
    assert held["node"]["class"] == "class 0"
    assert held["node"]["degree"] == 4
    assert len(held["rows"]) == 3 * 4
    assert {"layer", "head", "node", "weight", "score", "hops", "class", "band", "bands"} == set(held["rows"][0])
    lines = [line.split() for line in output.splitlines() if "%" in line]
    assert len(lines) == len(held["rows"])
    for line, row in zip(lines, held["rows"], strict=True):
        assert f"{row['weight']:.1%}" in line
        assert str(row["node"]) in line
    assert "node 7: class 0, predicted class" in output


def test_explain_says_which_network_of_an_ensemble_it_shows(call, trained, tmp_path):
    config = make_config("asgat-plus", epochs=2, hidden=4, heads=2, k=4, order=5, members=2)
    run(load_dataset("karate"), "asgat-plus", config, runs=[0], out=tmp_path)
    assert "the average of 2 networks; this is the attention of the first." in call("explain", tmp_path, "--node", 7)
    assert "average" not in call("explain", trained, "--node", 7)


def test_explain_says_that_hops_count_edges_to_similar_nodes(call, trained, tmp_path):
    config = make_config("asgat-plus", epochs=2, hidden=4, heads=2, k=9, order=5, similar=2, similar_weight=9.0)
    data = load_dataset("csbm")
    run(data, "asgat-plus", config, runs=[0], out=tmp_path / "run")
    output = call("explain", tmp_path / "run", "--node", 7, "--json", tmp_path / "out.json")
    assert "Hops include edges to the 2 nodes with the most similar features." in output
    assert "most similar" not in call("explain", trained, "--node", 7)
    near = {row["node"] for row in json.loads((tmp_path / "out.json").read_text())["rows"] if row["hops"] == 1}
    joined, given = (np.flatnonzero(g.adjacency[[7]].toarray()) for g in (graph_for(data, config), data.graph))
    assert near <= set(joined.tolist())
    assert near - set(given.tolist()), "a neighbour by its features alone"


def test_explain_shows_the_best_of_every_head(call, trained):
    for top in (1, 2):
        assert call("explain", trained, "--node", 0, "--top", top).count("%") == 3 * top


def test_an_unknown_node_and_a_folder_without_a_run(refused, trained, tmp_path):
    assert "no node 'nobody'" in refused("explain", trained, "--node", "nobody")
    assert str(tmp_path) in refused("explain", tmp_path, "--node", 0)
    assert str(tmp_path) in refused("report", tmp_path)


def test_report_is_written_into_the_run(call, trained, tmp_path):
    output = call("report", trained, "--json", tmp_path / "out.json")
    assert str(trained / "report.html") in output.replace("\n", "")
    assert "all 34 nodes" in output
    assert (trained / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    held = json.loads((tmp_path / "out.json").read_text())
    assert held["file"] == str(trained / "report.html")
    assert "explorer" not in held
    assert sum(map(sum, held["confusion"])) == sum(bin["nodes"] for bin in held["homophily"])


def test_report_is_written_where_out_says(call, refused, trained, tmp_path):
    call("report", trained, "--out", tmp_path / "a" / "page.html")
    assert (tmp_path / "a" / "page.html").is_file()
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("report", trained, "--out", tmp_path / "file" / "page.html")


EVERY_CHANNELS = typing.get_args(Channels)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("channels", EVERY_CHANNELS)
def test_the_deep_model_is_explained_and_reported_whatever_its_blocks_hold(call, refused, tmp_path, channels, directed):
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=directed)
    settings = {"channels": channels, "layers": 2}
    options = {"epochs": 2, "hidden": 4, "heads": 2, "k": 3, "order": 3, "directed": directed, "settings": settings}
    ASGATClassifier("asgat-deep", **options).fit(graph, club.y, range(20), x=club.x).save_pretrained(tmp_path / "run")
    result = json.loads((tmp_path / "run/result.json").read_text())
    attends, filters = "attention" in channels, "filters" in channels
    assert (result["certified_share"] is None) == (not attends)
    call("report", tmp_path / "run", "--json", tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["layer_name"] == "block"
    assert (content["distance"] is not None) == attends
    if attends or filters:
        assert [len(content["filters"][key]) for key in ("layers", "filter_layers")] == [2 * attends, 2 * filters]
    else:
        assert content["filters"] is None
        assert "has no spectral attention" in refused("explain", tmp_path / "run", "--node", 7)
        return
    output = call("explain", tmp_path / "run", "--node", 7, "--json", tmp_path / "out.json")
    held = json.loads((tmp_path / "out.json").read_text())
    assert "block" in output
    assert (len(held["rows"]) > 0) == attends == ("what node 7 attends to" in output)
    assert (len(held["filter_heads"]) == 4) == filters == ("filter heads: the share of each band" in output)
    assert ("no attention to explain" in output) != attends
    assert ("along edges:" in output) == (filters and directed)


def test_explain_and_report_tell_the_sides_of_a_directed_graph_apart(call, tmp_path):
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=True)
    model = ASGATClassifier(epochs=3, hidden=4, heads=2, k=4, order=5, directed=True)
    model.fit(graph, club.y, x=club.x).save_pretrained(tmp_path / "run")
    output = call("explain", tmp_path / "run", "--node", 7, "--top", 0, "--json", tmp_path / "out.json")
    held = json.loads((tmp_path / "out.json").read_text())
    assert (held["node"]["degree"], held["node"]["out_degree"], held["node"]["in_degree"]) == (4, 0, 4)
    assert "out-degree 0, in-degree 4" in output
    assert "side: a node as the source of its edges (out) or as the target of edges (in)." in output
    lines = [line for line in output.splitlines() if "%" in line]
    assert len(lines) == len(held["rows"])
    for line, row in zip(lines, held["rows"], strict=True):
        assert f"{row['node']} ({row['node_side']})" in line
    call("report", tmp_path / "run", "--json", tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["sides"] == ["out", "in"]
    assert {"label": "graph", "value": "34 nodes", "note": "78 directed edges"} in content["summary"]
    assert [len(rows) for rows in content["distance"]["layers"]] == [4, 2]
