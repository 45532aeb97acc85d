"""Trainings on the benchmark files: minutes each, so they are `slow`."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def train(real_data, folder, *arguments):
    command = [sys.executable, "-m", "asgat", "train", *arguments, "--json", "result.json", "--out", "run"]
    subprocess.run(command, cwd=folder, env={**os.environ, "ASGAT_DATA_DIR": str(real_data)}, check=True)
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize(("name", "least"), [("texas", 0.82), ("cornell", 0.81), ("wisconsin", 0.85)])
def test_webgraphs_with_their_recipe(real_data, tmp_path, name, least):
    from asgat.data import load_dataset
    from asgat.training.metrics import majority_share

    result = train(real_data, tmp_path, name)
    assert result["micro_f1"]["mean"] >= least
    data = load_dataset(name, data_dir=real_data)
    for split, score in zip(data.splits, result["micro_f1"]["per_run"], strict=True):
        assert score > majority_share(data.y[split.train], data.y[split.test]), "stuck at the majority class"


@pytest.mark.parametrize(("name", "least"), [("chameleon", 0.62), ("cora", 0.84), ("citeseer", 0.76)])
def test_larger_graphs_with_their_recipe(real_data, tmp_path, name, least):
    assert train(real_data, tmp_path, name, "--splits", "0-1")["micro_f1"]["mean"] >= least


def test_one_dense_epoch_on_pubmed_fits_in_8_gib(real_data, tmp_path):
    settings = ["order=15", "heads=2", "hidden=32", "k=11", "epochs=1", "form=dense", "max_restarts=0"]
    changes = [part for setting in settings for part in ("--set", setting)]
    result = train(real_data, tmp_path, "pubmed", "--model", "asgat-cheb", "--splits", "0", *changes)
    assert result["peak_memory_mb"] < 8 * 1024
