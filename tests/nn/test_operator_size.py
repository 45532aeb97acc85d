"""Bytes counted by hand, for 500 nodes and 8 orders; tests of plans compare them with what is allocated."""

from inspect import signature

import pytest
import torch

from asgat.nn import operator_size
from asgat.nn.operator_size import (
    ARMA_ORDERS,
    arma_size,
    dense_size,
    exact_size,
    exact_table_size,
    truncated_table_size,
)
from asgat.spectral import ArmaOperator

N = 500
CPU = torch.device("cpu")


def test_eigenvectors():
    assert exact_size(N, heads=3) == (12 * N**2, 24 * N**2, 36 * N**2)


def test_a_dense_operator_keeps_all_orders_that_fit(monkeypatch):
    block = ((8 + 3) * 4 + 3 * 32) * N**2
    assert dense_size(N, 8, 3, all_pairs=False) == (33 * N**2, block, block)
    assert dense_size(N, 8, 3, all_pairs=True) == (33 * N**2, block, 24 * N**2)
    monkeypatch.setattr(operator_size, "CACHE", 32 * N**2)
    assert dense_size(N, 8, 3, all_pairs=True).held == 33 * N**2
    monkeypatch.setattr(operator_size, "CACHE", 32 * N**2 - 1)
    assert dense_size(N, 8, 3, all_pairs=True) == (0, 0, (32 + 24) * N**2), "computed for every evaluation"
    monkeypatch.setattr(operator_size, "BLOCK", 1 << 20)
    assert dense_size(N, 8, 3, all_pairs=False) == (0, 0, 1 << 20)
    monkeypatch.setattr(operator_size, "BLOCK", 1)
    assert dense_size(N, 8, 3, all_pairs=False).scores == block // N, "one row at least"


def test_conjugate_gradients(monkeypatch):
    terms = 3 * ((6 + 11) * 4 + 24) * N**2
    assert arma_size(N, 6, 3, all_pairs=True) == arma_size(N, 6, 3, all_pairs=False) == (0, 0, terms + 12 * N**2)
    monkeypatch.setattr(operator_size, "BLOCK", 1 << 20)
    assert arma_size(N, 6, 3, all_pairs=False).scores == 1 << 20, "matrices of denominators are not made"
    assert arma_size(N, 6, 3, all_pairs=True).scores == terms
    assert signature(ArmaOperator).parameters["numerator"].default + 1 == ARMA_ORDERS


@pytest.mark.parametrize("item", [2, 4])
def test_tables(item, monkeypatch):
    monkeypatch.setattr("asgat.threads._given", 3)
    per_entry = 4 + 8 * item
    assert truncated_table_size(N, 8, 6, item) == (N * 6 * per_entry + 9 * N, 64 * N + (64 << 20), 0)
    entries = round(N * 44.996 * per_entry)
    rows = N * (9 + 20 * 8)
    assert exact_table_size(N, 8, 44.996, item, CPU) == (entries + rows, entries + 3 * 16 * N * 65, 0)
    gpu = torch.device("cuda")
    assert exact_table_size(N, 8, 44.996, item, gpu).building == entries + 64 * N**2
    monkeypatch.setattr(operator_size, "DEVICE_BYTES", 1000)
    assert exact_table_size(N, 8, 44.996, item, gpu).building == entries + 1000
