"""A study small enough for tests: karate's 34 nodes, two splits, a few epochs."""

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
    """A quick run is quicker still."""
    monkeypatch.setitem(module.QUICK_SETTINGS, "epochs", 3)


@pytest.fixture
def study(tmp_path, monkeypatch, few_epochs):
    """A quick study of the karate club, with no data files at hand."""
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    return Reproduction(tmp_path / "out", quick=True, datasets=("karate",), models=("asgat-cheb", "gcn"))


@pytest.fixture
def carry_out(study):
    """A function that performs an experiment and returns its result, the text of its tables, and its files."""
    import io
    import json

    from rich.console import Console

    from asgat.experiments.experiment import perform

    def call(experiment, study=study):
        tables, files = perform(experiment, study)
        console = Console(width=100, record=True, file=io.StringIO())
        for table in tables:
            console.print(table)
        return json.loads(files[0].read_bytes()), console.export_text(), files

    return call
