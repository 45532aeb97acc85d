import json

import numpy as np
import pytest

from asgat.cli.app import app
from asgat.cli.convert import read_array
from asgat.disk.disk_graph import OnDiskGraph
from asgat.errors import AsgatError


@pytest.fixture
def files(tmp_path):
    (tmp_path / "edges.csv").write_text("from,to\n" + "".join(f"{v},{(v + 1) % 40}\n" for v in range(40)))
    x = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    lines = [",".join(map(str, row)) for row in x.tolist()]
    (tmp_path / "x.csv").write_text("a,b,c\n" + "\n".join(lines) + "\n")
    (tmp_path / "y.csv").write_text("\n".join(str(v % 2) for v in range(40)))
    np.save(tmp_path / "parts.npy", np.tile([1, 2, 3, 1], 10))
    return tmp_path


def convert(files, out, *options):
    fixed = ["convert", str(files / "edges.csv"), str(out), "--labels", str(files / "y.csv")]
    app([*fixed, *options], standalone_mode=False)


def test_files_become_a_graph_that_trains(files, capsys):
    out = files / "graph"
    options = ["--features", str(files / "x.csv"), "--splits", str(files / "parts.npy"), "--json", str(files / "j")]
    convert(files, out, *options, "--order", "rcm", "--name", "ring")
    graph = OnDiskGraph(out)
    assert (graph.name, graph.num_nodes, graph.num_entries, graph.num_classes) == ("ring", 40, 80, 2)
    assert np.array_equal(graph.features(0, 40), np.load(files / "x.npy")[graph.original_nodes()])
    told = json.loads((files / "j").read_text())
    assert (told["nodes"], told["entries"], told["splits"], told["order"]) == (40, 80, 1, "rcm")
    command = ["train", str(out), "--model", "asgat-cheb", "--splits", "0", "--set", "epochs=2", "--set", "form=table"]
    app([*command, "--out", str(files / "run")], standalone_mode=False)
    assert json.loads((files / "run" / "result.json").read_text())["dataset"] == "ring"
    assert "ring" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--order", "best"], "--order must be one of"),
        (["--self-loops", "some"], "--self-loops must be"),
        (["--splits", "nowhere.npy"], "nowhere.npy is no file"),
    ],
)
def test_bad_options_are_told(files, options, words):
    with pytest.raises(AsgatError, match=words):
        convert(files, files / "graph", "--features", str(files / "x.npy"), *options)
    assert not (files / "graph").exists()


def test_an_edge_list_that_is_not_there_is_told(files):
    (files / "edges.csv").unlink()
    with pytest.raises(AsgatError, match="is no edge list"):
        convert(files, files / "graph", "--features", str(files / "x.npy"))


def test_numbers_are_read_from_text_with_names_or_without(files):
    assert np.allclose(read_array(files / "x.csv"), np.load(files / "x.npy"))
    assert read_array(files / "y.csv", whole=True).tolist() == [0, 1] * 20
    (files / "bad.csv").write_text("1,2\n3,x\n")
    with pytest.raises(AsgatError, match="cannot be read as numbers"):
        read_array(files / "bad.csv")
