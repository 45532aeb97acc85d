"""A reproduction small enough for tests: karate's 34 nodes, two splits, a few epochs."""

import pytest
import torch

from asgat.experiments import reproduction as module
from asgat.experiments.reproduction import Reproduction


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def few_epochs(monkeypatch):
    """Even fewer epochs than in a quick run."""
    monkeypatch.setitem(module.QUICK_SETTINGS, "epochs", 3)


@pytest.fixture
def reproduction(tmp_path, monkeypatch, few_epochs):
    """A quick reproduction on the karate club, without data files."""
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    return Reproduction(tmp_path / "out", quick=True, datasets=("karate",), models=("asgat-cheb", "gcn"))


@pytest.fixture
def run_quick(reproduction):
    """A function that runs an experiment and returns its result, the text of its tables, and its files."""
    import json

    from asgat.experiments.experiment import run_experiment

    def call(experiment, reproduction=reproduction):
        tables, files = run_experiment(experiment, reproduction)
        cells = [cell for table in tables for row in (table.headings, *table.rows) for cell in row]
        texts = [text for table in tables for text in (table.title, table.caption)]
        return json.loads(files[0].read_bytes()), " ".join(cells + texts), files

    return call
