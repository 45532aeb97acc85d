"""Small data sets with published settings, so that every measurement is short."""

import pytest

from asgat.data import load_dataset
from reproduce.bench import certificate, epoch

QUICK = dict(order=4, dropout=0.1, heads=2, hidden=4, lr=0.01, weight_decay=1e-4, k=3)


def load(name, data_dir=None):
    return load_dataset("csbm", num_nodes=200, num_features=8) if name == "csbm" else load_dataset(name)


@pytest.fixture
def small(monkeypatch):
    """Two names with settings: the karate club, and a block model of 200 nodes under the name of a large one."""

    monkeypatch.setattr(epoch, "CHEBYSHEV", {"karate": QUICK, "csbm": {**QUICK, "order": 6}})
    monkeypatch.setattr(certificate, "load_dataset", load)
