"""Small graphs and fields that are trained in a second."""

from dataclasses import replace

import pytest
import torch

from asgat.data import contextual_sbm
from asgat.data.dataset import Dataset
from asgat.data.splits import stratified_splits
from asgat.leaderboard import field
from asgat.leaderboard.contest import Clock, Contest
from asgat.leaderboard.field import Candidate, Preset
from asgat.leaderboard.trial import TrialStore, Workbench
from asgat.training.interrupt import Interrupt

ROUNDS = ((3, 1), (2, 1))
TINY = Preset(5.0, settings=1, first_epochs=4, epochs=12, patience=12, few_rounds=ROUNDS, rounds=(), large_rounds=())


@pytest.fixture(scope="session")
def blocks() -> Dataset:
    """Two splits of a graph with informative features and neighbours."""
    data = contextual_sbm(num_nodes=120, signal=0.6, num_features=6, seed=1)
    return replace(data, splits=stratified_splits(data.y, 2, 0, 0.6, 0.2), protocol="own")


@pytest.fixture(scope="session")
def preset() -> Preset:
    return TINY


@pytest.fixture
def small_field(monkeypatch):
    return make_small_field(monkeypatch)


@pytest.fixture
def make_contest(blocks, preset, small_field):
    """A function that makes a contest of the small field."""

    def call(candidates=small_field, seconds=1e6, folder=None, interrupt=None, report=None):
        store = TrialStore(folder, "cpu", "digest")
        bench = Workbench({False: blocks}, torch.device("cpu"))
        own = interrupt or Interrupt()
        return Contest(bench, store, candidates, blocks.splits[0], preset, 0, Clock(seconds), own, report=report)

    return call


def make_small_field(monkeypatch):
    """The fields of all presets are four quick candidates, two of them of one row."""
    shared = {"epochs": 12, "patience": 12, "max_restarts": 0, "normalize_features": False}
    found = [
        Candidate("logistic regression", "mlp", {**shared, "layers": 1, "dropout": 0.0, "lr": 0.05}),
        Candidate("gcn", "gcn", {**shared, "hidden": 8}),
        Candidate("gcn", "gcn", {**shared, "hidden": 8, "dropout": 0.0}),
        Candidate("linkx", "linkx", {**shared, "hidden": 8}),
    ]
    monkeypatch.setattr("asgat.leaderboard.board.make_field", lambda *_, **__: found)
    monkeypatch.setitem(field.PRESETS, "quick", TINY)
    return found
