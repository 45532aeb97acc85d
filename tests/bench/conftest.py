"""Small data sets with published settings, so that every measurement is short."""

import pytest
import torch

from asgat.bench import certificate_error as certificate
from asgat.bench import epoch
from asgat.data import load_dataset

QUICK = dict(order=4, dropout=0.1, heads=2, hidden=4, lr=0.01, weight_decay=1e-4, k=3)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def load(name, data_dir=None):
    return load_dataset("csbm", num_nodes=200, num_features=8) if name == "csbm" else load_dataset(name)


@pytest.fixture
def small(monkeypatch):
    """Two names with settings: the karate club, and a block model of 200 nodes under the name of a large one."""

    monkeypatch.setattr(epoch, "CHEBYSHEV", {"karate": QUICK, "csbm": {**QUICK, "order": 6}})
    monkeypatch.setattr(certificate, "load_dataset", load)
