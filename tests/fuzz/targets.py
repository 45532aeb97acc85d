"""Every reader of files, with files it reads: what the fuzzer spoils."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.data.conftest import _emit

Files = dict[str, bytes]


@dataclass(frozen=True)
class Target:
    """A reader.

    Args:
        make: the files it reads, sound ones, by name.
        read: reads them from a folder and uses what they hold.
    """

    make: Callable[[], Files]
    read: Callable[[Path], object]


def _raw(folder: Path, names: Files) -> Any:
    from asgat.data.download import MAX_FILE_BYTES
    from asgat.files.raw_file import RawFile

    return {name: RawFile.read(folder / name, MAX_FILE_BYTES) for name in names}


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


# -- published files, as if their checksums were right ------------------------------------------------------------


@cache
def planetoid() -> Files:
    known, test, num_nodes = 503, [504, 503], 505
    label, feature = np.eye(2, dtype=np.int32), np.eye(3, dtype=np.float32)
    path = {i: [j for j in (i - 1, i + 1) if 0 <= j < num_nodes] for i in range(num_nodes)}
    parts = {
        "allx": sp.csr_array(feature[np.arange(known) % 3]),
        "tx": sp.csr_array(feature[np.array(test) % 3]),
        "ally": label[np.arange(known) % 2],
        "ty": label[np.array(test) % 2],
        "y": label[np.arange(2) % 2],
        "graph": path,
    }
    files = {f"planetoid/ind.cora.{part}": b"\x80\x02" + _emit(value) + b"." for part, value in parts.items()}
    return files | {"planetoid/ind.cora.test.index": b"504\n503\n"}


def read_planetoid(folder: Path) -> object:
    from asgat.data.planetoid import load_planetoid

    return load_planetoid("cora", "full", _raw(folder, planetoid()))


@cache
def webgraph() -> Files:
    from asgat.data.geom_gcn import split_files, webgraph_files

    nodes, edges = webgraph_files("texas", "geom-gcn")[:2]
    part = np.arange(6) % 3
    masks = {f"{name}_mask": (part == i).astype(np.float64) for i, name in enumerate(("train", "val", "test"))}
    rows = "".join(f"{i}\t1,0,{i}\t{i % 2}\n" for i in range(6))
    return {
        nodes: b"node_id\tfeature\tlabel\n" + rows.encode(),
        edges: b"node_id\tnode_id\n0\t1\n1\t2\n3\t4\n4\t5\n",
        **dict.fromkeys(split_files("texas"), _npz(**masks)),
    }


def read_webgraph(folder: Path) -> object:
    from asgat.data.geom_gcn import load_webgraph

    return load_webgraph("texas", "geom-gcn", _raw(folder, webgraph()))


@cache
def heterophilous() -> Files:
    part = np.arange(6) % 3
    masks = {f"{name}_masks": np.stack([part == i] * 2) for i, name in enumerate(("train", "val", "test"))}
    arrays = {"node_features": np.eye(6, dtype=np.float32), "node_labels": np.arange(6) % 2}
    return {"heterophilous-graphs/data/minesweeper.npz": _npz(**arrays, edges=np.array([[0, 1], [1, 2]]), **masks)}


def read_heterophilous(folder: Path) -> object:
    from asgat.data.heterophilous import load_heterophilous

    return load_heterophilous("minesweeper", "masks", _raw(folder, heterophilous()))


NODES = b"id,colour,size,kind,part\n" + b"".join(
    f"n{i},{'red' if i % 3 else 'blue'},{i}.5,{'ab'[i % 2]},{('train', 'val', 'test')[i % 3]}\n".encode()
    for i in range(12)
)
EDGES = b"source,target,weight\n" + b"".join(f"n{i},n{(i * 5 + 1) % 12},{i + 1}\n".encode() for i in range(12))


def _encoded(edges: Path, nodes: Path | None, label: str, split: str | None = "part") -> object:
    from asgat.estimator.encoded_graph import encode_user_graph
    from asgat.tabular.assembly import read_graph

    return encode_user_graph(read_graph(edges, nodes, label=label, split=split))


@cache
def parquet() -> Files:
    import pyarrow.csv
    import pyarrow.parquet

    files = {}
    for name, content in (("nodes", NODES), ("edges", EDGES)):
        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(content)), stream)
        files[f"{name}.parquet"] = stream.getvalue()
    return files


@cache
def graphml() -> Files:
    keys = "".join(f'<key id="d{i}" for="node" attr.name="{name}"/>' for i, name in enumerate(("kind", "part", "size")))
    parts = ("train", "val", "test")
    nodes = "".join(
        f'<node id="n{i}"><data key="d0">{"ab"[i % 2]}</data><data key="d1">{parts[i % 3]}</data>'
        f'<data key="d2">{i}</data></node>'
        for i in range(12)
    )
    edges = "".join(f'<edge source="n{i}" target="n{(i + 1) % 12}"/>' for i in range(12))
    graph = f'<graph edgedefault="directed">{nodes}{edges}</graph>'
    text = f'<?xml version="1.0"?><graphml xmlns="http://x">{keys}{graph}</graphml>'
    return {"g.graphml": text.encode()}


def own_npz() -> Files:
    part = np.arange(12) % 3
    masks = {f"{name}_mask": part == i for i, name in enumerate(("train", "val", "test"))}
    ends = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
    return {"g.npz": _npz(edge_index=ends, x=np.eye(12, 3), kind=np.arange(12) % 2, **masks)}


# -- lists and arrays to convert, and the graph on disk -----------------------------------------------------------


def read_edge_lists(folder: Path) -> object:
    from asgat.disk.edge_reader import read_edges

    return [list(read_edges(folder / name, 64)) for name in edge_lists()]


def edge_lists() -> Files:
    ends = np.array([[0, 1, 2], [1, 2, 0]])
    text = b"# a comment\nsource,target,weight\n0,1,0.5\n1,2,1\n\n2,0,3\n"
    return {"e.csv": text, "e.npy": _npy(ends), "e.npz": _npz(edge_index=ends, edge_weight=np.ones(3))}


def read_plain_arrays(folder: Path) -> object:
    from asgat.disk.edge_reader import read_array

    return [read_array(folder / name, name[0] == "y") for name in plain_arrays()]


def plain_arrays() -> Files:
    return {"x.npy": _npy(np.eye(3)), "x.csv": b"a,b\n1,2\n3,4\n", "y.csv": b"0\n1\n2\n"}


@cache
def on_disk() -> Files:
    from asgat.disk.converter import write_graph

    rng = np.random.default_rng(0)
    ends = rng.integers(0, 30, (2, 60))
    part = np.arange(30) % 3 + 1
    with TemporaryDirectory() as folder:
        chunk = (*ends, rng.uniform(0.5, 2.0, 60))
        write_graph(Path(folder) / "g", [chunk], rng.normal(size=(30, 2)), np.arange(30) % 2, part, order="none")
        return {file.name: file.read_bytes() for file in (Path(folder) / "g").iterdir()}


def read_on_disk(folder: Path) -> object:
    from asgat.disk.disk_graph import OnDiskGraph
    from asgat.tables.exact_builder import build_exact
    from asgat.tables.truncated_builder import build_truncated

    graph = OnDiskGraph(folder)
    build_truncated(graph.matrix(), 3, 4, keep=8)
    build_exact(graph.matrix(), 3, 4)
    graph.original_nodes()
    graph.mean_rows(0, graph.num_nodes)
    return graph.to_dataset()


# -- recipes and run directories ----------------------------------------------------------------------------------

RECIPE = b"""model = "asgat-cheb"

[all]
epochs = 20
dropout = 0.5

[asgat-cheb]
k = 6
filter_hidden = [8, 8]
filter_activation = "relu"
self_loops = "add"

[asgat-cheb.found]
seed = 0
"""


def read_recipe(folder: Path) -> object:
    from asgat.recipe import default_model, load_config

    return load_config("csbm", default_model("csbm", folder / "r.toml"), {}, folder / "r.toml")


@cache
def run_directory() -> Files:
    """What ``asgat fit`` writes."""
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.tabular.assembly import read_graph

    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "edges.csv").write_bytes(EDGES)
        (folder / "nodes.csv").write_bytes(NODES)
        graph = read_graph(folder / "edges.csv", folder / "nodes.csv", label="kind", split="part")
        small = {"epochs": 2, "hidden": 2, "heads": 2, "order": 3, "filter_hidden": (3,), "k": 3}
        ASGATClassifier("asgat-cheb", settings=small).fit(graph).save_pretrained(folder / "run")
        return {file.name: file.read_bytes() for file in (folder / "run").iterdir() if file.is_file()}


def read_run(folder: Path) -> object:
    from asgat.estimator.encoded_graph import Encoding
    from asgat.estimator.trained_run import load_run, read_encoder
    from asgat.report.content import training_curves
    from asgat.training.run_directory import RunDirectory

    directory = RunDirectory(folder)
    result = directory.read_result()
    directory.begin(tomllib.loads(run_directory()["config.toml"].decode()))
    Encoding.from_dict(read_encoder(folder))
    run = load_run(folder)
    training_curves(run, result)
    directory.add_run({"run": 1, "val_score": 0.0}, [], [{"run": 0, "val_score": 1.0}], {}, {})
    return run.logits()


def _training() -> Callable[[Any], object]:
    """A small training, given its checkpointer."""
    import torch

    from asgat.data import load_dataset
    from asgat.nn.registry import make_config
    from asgat.training.loop import train_jobs
    from asgat.training.run_state import Job
    from asgat.training.runner import make_task

    data, config = load_dataset("karate"), make_config("gcn", hidden=2, epochs=5, lr=1e-9, max_restarts=1)
    task = make_task(data, "gcn", config, torch.device("cpu"))
    return lambda checkpointer: list(train_jobs(task, [Job(data.splits[0], 0, config)], checkpointer=checkpointer))


@cache
def unfinished() -> Files:
    """The checkpoint of a run that was stopped in the middle of its second attempt."""
    from asgat.training.checkpoint import Checkpointer
    from asgat.training.run_files import UNFINISHED

    class Stopped(Checkpointer):
        def save(self, runs: Any) -> None:
            super().save(runs)
            self.asked = runs[0][0].attempt == 1

    with TemporaryDirectory() as folder:
        with suppress(KeyboardInterrupt):
            _training()(Stopped(folder, seconds=0.0))
        return {UNFINISHED: (Path(folder) / UNFINISHED).read_bytes()}


def read_unfinished(folder: Path) -> object:
    from asgat.training.checkpoint import Checkpointer

    return _training()(Checkpointer(folder, seconds=1e9))


TARGETS: dict[str, Target] = {
    "planetoid": Target(planetoid, read_planetoid),
    "webgraph": Target(webgraph, read_webgraph),
    "heterophilous": Target(heterophilous, read_heterophilous),
    "csv": Target(
        lambda: {"edges.csv": EDGES, "nodes.csv": NODES},
        lambda folder: _encoded(folder / "edges.csv", folder / "nodes.csv", "kind"),
    ),
    "parquet": Target(parquet, lambda folder: _encoded(folder / "edges.parquet", folder / "nodes.parquet", "kind")),
    "graphml": Target(graphml, lambda folder: _encoded(folder / "g.graphml", None, "kind")),
    "npz": Target(own_npz, lambda folder: _encoded(folder / "g.npz", None, "kind", None)),
    "edge lists": Target(edge_lists, read_edge_lists),
    "arrays": Target(plain_arrays, read_plain_arrays),
    "graph on disk": Target(on_disk, read_on_disk),
    "recipe": Target(lambda: {"r.toml": RECIPE}, read_recipe),
    "run directory": Target(run_directory, read_run),
    "unfinished run": Target(unfinished, read_unfinished),
}
