import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from asgat.data import contextual_sbm
from asgat.disk.converter import write_graph
from asgat.errors import AsgatError
from asgat.estimator import disk_predictions
from asgat.estimator.disk_predictions import predict_on_disk
from asgat.nn.registry import make_config
from asgat.training import load_model, run
from asgat.training.inputs import make_inputs

parquet = pytest.importorskip("pyarrow.parquet")

DATA = contextual_sbm(num_nodes=200, mean_degree=5.0, num_features=6, seed=0)
TABLE = {"form": "table", "order": 3, "k": 3, "epochs": 2, "batch_size": 50, "max_restarts": 0}


@pytest.fixture
def graph(tmp_path):
    labels = np.where(np.arange(200) % 7 == 0, -1, DATA.y)
    edges, _ = DATA.graph.edges_once()
    return write_graph(tmp_path / "g", [(*edges, None)], DATA.x, labels)


@pytest.mark.parametrize("model", ["asgat-cheb", "asgat-deep"])
def test_predictions_are_those_of_the_model_on_the_whole_graph(model, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_predictions, "ROWS", 64)
    config, dataset = make_config(model, **TABLE), graph.to_dataset()
    run(dataset, model, config, [0], out=tmp_path / "run")
    steps: list[str] = []
    summary = predict_on_disk(tmp_path / "run", graph, tmp_path / "p.parquet", steps.append)
    held = parquet.ParquetFile(tmp_path / "p.parquet")
    assert held.num_row_groups == 4
    table = held.read().to_pydict()
    net, _, _ = load_model(tmp_path / "run")
    with torch.no_grad():
        truth = net(*make_inputs(dataset, model, config.replace(batch_size=None), torch.device("cpu"))).softmax(1)
    assert np.allclose(np.stack([table["p(0)"], table["p(1)"]], 1), truth, atol=1e-5)
    assert table["prediction"] == truth.argmax(1).tolist()
    assert table["node"] == graph.original_nodes().tolist()
    assert table["label"] == [None if label < 0 else label for label in dataset.y.tolist()]
    right = [a == b for a, b in zip(table["prediction"], table["label"], strict=True) if b is not None]
    assert summary["accuracy"] == pytest.approx(np.mean(right))
    assert (summary["nodes"], summary["labelled"]) == (200, len(right))
    assert sum(row["nodes"] for row in summary["rows"]) == 200
    assert sum(row["unlabelled"] for row in summary["rows"]) == 200 - len(right)
    assert steps == ["finding the table", "computing", "writing"]


def test_a_killed_prediction_leaves_no_file_under_its_name(graph, tmp_path, monkeypatch):
    """Killed after its first row group, it is started again."""
    monkeypatch.setattr(disk_predictions, "ROWS", 64)
    run(graph.to_dataset(), "asgat-cheb", make_config("asgat-cheb", **TABLE), [0], out=tmp_path / "run")
    out = tmp_path / "made" / "p.parquet"
    code = (
        "import os, pathlib, pyarrow.parquet, asgat.estimator.disk_predictions as d; "
        "from asgat.disk.disk_graph import OnDiskGraph; d.ROWS = 64; "
        "write = pyarrow.parquet.ParquetWriter.write_table; "
        "pyarrow.parquet.ParquetWriter.write_table = lambda *a: (write(*a), os.kill(os.getpid(), 9)); "
        f"d.predict_on_disk(pathlib.Path({str(tmp_path / 'run')!r}), OnDiskGraph({str(graph.path)!r}), "
        f"pathlib.Path({str(out)!r}))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (left,) = out.parent.iterdir()
    assert left.name.startswith(".p.parquet.")
    kept = out.parent / ".p.parquet.mine"
    kept.touch()
    predict_on_disk(tmp_path / "run", graph, out)
    assert sorted(path.name for path in out.parent.iterdir()) == [".p.parquet.mine", "p.parquet"]
    assert parquet.ParquetFile(out).metadata.num_rows == 200


def test_what_does_not_fit_is_refused(graph, tmp_path):
    run(graph.to_dataset(), "asgat-cheb", make_config("asgat-cheb", **TABLE), [0], out=tmp_path / "run")
    with pytest.raises(AsgatError, match=r"written as \.parquet, but p\.csv"):
        predict_on_disk(tmp_path / "run", graph, tmp_path / "p.csv")
    edges, _ = DATA.graph.edges_once()
    other = write_graph(tmp_path / "h", [(*edges, None)], DATA.x[:, :3], DATA.y)
    with pytest.raises(AsgatError, match="takes 6 features and knows 2 classes, but h has 3 features"):
        predict_on_disk(tmp_path / "run", other, tmp_path / "p.parquet")
    assert not list(tmp_path.glob("*p.parquet*"))


@pytest.mark.parametrize(
    ("model", "settings", "why"),
    [
        ("linkx", {}, "whose weights belong to the nodes"),
        ("asgat-deep", {"adjacency": True, "form": "table", "order": 3, "k": 3}, "whose weights belong to the nodes"),
        ("gcn", {}, "which needs the whole graph"),
    ],
)
def test_models_that_are_not_computed_in_blocks_are_refused(model, settings, why, graph, tmp_path):
    run(DATA, model, make_config(model, epochs=1, max_restarts=0, **settings), [0], out=tmp_path / "run")
    with pytest.raises(AsgatError, match=f"is {model}, {why}"):
        predict_on_disk(tmp_path / "run", graph, tmp_path / "p.parquet")
