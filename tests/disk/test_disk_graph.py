import json
import os

import numpy as np
import pytest

from asgat.data.digest import dataset_digest
from asgat.disk.converter import write_graph
from asgat.disk.disk_graph import OnDiskGraph, open_if_folder
from asgat.errors import AsgatError


@pytest.fixture
def folder(tmp_path):
    ends = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    labels = np.array([0, 1, 0, 1, -1])
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    write_graph(tmp_path / "g", [(*ends, weight)], np.eye(5), labels, np.array([1, 1, 2, 3, 0]), order="none")
    return tmp_path / "g"


def test_it_says_what_it_is(folder):
    graph = OnDiskGraph(folder)
    assert repr(graph) == "OnDiskGraph('g', nodes=5, entries=8, features=5, classes=2, splits=1)"
    assert (graph.metric, graph.protocol, graph.header.weighted) == ("micro_f1", "own", True)
    assert graph.to_dataset().graph.adjacency.toarray()[1, 2] == 2.0


def test_changes_stay_in_the_process_that_made_them(folder):
    first, second = OnDiskGraph(folder).matrix(), OnDiskGraph(folder).matrix()
    first.indices[:] = 0
    assert second.indices.tolist() == [1, 0, 2, 1, 3, 2, 4, 3]


def test_a_name_is_a_folder_only_where_there_is_one(folder, tmp_path):
    assert open_if_folder("cora") is None
    assert open_if_folder("\0") is None
    opened = open_if_folder(str(folder))
    assert opened is not None
    assert opened.num_nodes == 5
    with pytest.raises(AsgatError, match="is not a graph folder"):
        open_if_folder(str(tmp_path))


def test_a_missing_or_cut_file_is_named(folder):
    (folder / "labels.npy").unlink()
    with pytest.raises(AsgatError, match=r"labels\.npy cannot be read: No such file"):
        OnDiskGraph(folder)
    (folder / "labels.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(AsgatError, match=r"labels\.npy cannot be read"):
        OnDiskGraph(folder)
    np.save(folder / "labels.npy", np.zeros(4, dtype=np.int32))
    with pytest.raises(AsgatError, match=r"should hold int32 \[5\], but holds int32 \[4\]"):
        OnDiskGraph(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not describe a graph of this package"),
        ({"version": 2}, "of version 2"),
        ({"num_nodes": -1}, "holds invalid sizes"),
        ({"metric": "guess"}, "holds invalid sizes"),
        ({"colour": "red"}, "does not fit"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(folder, change, words):
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps({**header, **change}))
    with pytest.raises(AsgatError, match=words):
        OnDiskGraph(folder)


def test_a_broken_header_is_refused(folder):
    (folder / "header.json").write_text("{")
    with pytest.raises(AsgatError, match="it is not JSON"):
        OnDiskGraph(folder)


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", ".", "", "a\\b", "a\nb", "\x1b[2J", "x" * 300])
def test_a_name_is_a_plain_file_name(folder, tmp_path, name):
    """A run directory is named after it."""
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps({**header, "name": name}))
    with pytest.raises(AsgatError, match=r"header\.json: The name of a graph must be a plain file name"):
        OnDiskGraph(folder)
    if name:
        with pytest.raises(AsgatError, match="must be a plain file name"):
            write_graph(tmp_path / "h", [], np.eye(4), np.array([0, 1, 0, 1]), name=name)


def test_a_header_that_never_ends_is_refused(folder):
    (folder / "header.json").unlink()
    os.mkfifo(folder / "header.json")
    with pytest.raises(AsgatError, match="not a regular file"):
        OnDiskGraph(folder)


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.5])])
def test_the_digest_is_that_of_the_data_set(tmp_path, weight):
    ends = np.array([[0, 1, 2], [1, 2, 3]])
    graph = write_graph(tmp_path / "g", [(*ends, weight)], np.eye(4), np.array([0, 1, 0, 1]), num_splits=2)
    assert graph.digest() == dataset_digest(graph.to_dataset())


def test_it_knows_what_it_was_converted_from(folder, tmp_path):
    assert OnDiskGraph(folder).source() is None
    ends = np.array([[0, 1, 2], [1, 2, 3]])
    graph = write_graph(tmp_path / "h", [(*ends, None)], np.eye(4), np.array([0, 1, 0, 1]), source="these files")
    assert graph.source() == "these files"
