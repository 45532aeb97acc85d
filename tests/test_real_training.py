"""Trainings on the benchmark files: minutes each, so they are `slow`."""

import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def train(asgat, real_data, tmp_path):
    """A function that trains in a process and returns the result."""

    def call(*arguments):
        file = tmp_path / "result.json"
        options = ["--data-dir", real_data, "--json", file, "--out", tmp_path / "run"]
        code, _, errors = asgat("train", *arguments, *options, process=True)
        assert code == 0, errors
        return json.loads(file.read_text())

    return call


@pytest.mark.parametrize(("name", "least"), [("texas", 0.82), ("cornell", 0.81), ("wisconsin", 0.85)])
def test_webgraphs_with_their_recipe(train, real_data, name, least):
    from asgat.data import load_dataset
    from asgat.training.metrics import majority_share

    result = train(name)
    assert result["micro_f1"]["mean"] >= least
    data = load_dataset(name, data_dir=real_data)
    for split, score in zip(data.splits, result["micro_f1"]["per_run"], strict=True):
        assert score > majority_share(data.y[split.train], data.y[split.test]), "stuck at the majority class"


@pytest.mark.parametrize(("name", "least"), [("chameleon", 0.62), ("cora", 0.84), ("citeseer", 0.76)])
def test_larger_graphs_with_their_recipe(train, name, least):
    assert train(name, "--splits", "0-1")["micro_f1"]["mean"] >= least


def test_one_dense_epoch_on_pubmed_fits_in_8_gib(train):
    settings = ["order=15", "heads=2", "hidden=32", "k=11", "epochs=1", "form=dense", "max_restarts=0"]
    changes = [part for setting in settings for part in ("--set", setting)]
    result = train("pubmed", "--model", "asgat-cheb", "--splits", "0", *changes)
    assert result["peak_memory_mb"] < 8 * 1024


@pytest.mark.parametrize("name", ["cora", "chameleon"])
def test_selections_used_again_are_those_of_the_whole_table(name, real_data):
    import torch
    from tests.training.selections import assert_reuse_changes_nothing

    from asgat.data import load_dataset
    from asgat.training.runner import make_task
    from reproduce.bench.epoch import published_config

    data, config = load_dataset(name, data_dir=real_data), published_config(name)
    task = make_task(data, "asgat-cheb", config, torch.device("cpu"))
    assert_reuse_changes_nothing(task, data.splits[0], config)
