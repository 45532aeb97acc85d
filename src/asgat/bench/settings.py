"""The settings that are measured: the authors' published ones, and one table for all of them."""

from __future__ import annotations

from typing import Any

from asgat.config import ASGATConfig
from asgat.errors import AsgatError, suggest
from asgat.nn.registry import make_config

TABLE: dict[str, Any] = {"form": "table", "candidates": 32, "cap": 256}

PUBLISHED: dict[str, dict[str, Any]] = {
    "texas": dict(order=16, dropout=0.1, heads=2, hidden=128, lr=0.06, weight_decay=5e-4, k=13),
    "chameleon": dict(order=8, dropout=0.4, heads=12, hidden=88, lr=0.01, weight_decay=1e-3, k=6),
    "squirrel": dict(order=16, dropout=0.5, heads=8, hidden=256, lr=0.008, weight_decay=5e-5, k=6),
    "cora": dict(order=14, dropout=0.1, heads=1, hidden=32, lr=0.005, weight_decay=1e-4, k=15),
    "citeseer": dict(order=14, dropout=0.2, heads=9, hidden=512, lr=0.005, weight_decay=8e-4, k=11, self_loops="add"),
    "pubmed": dict(order=15, dropout=0.1, heads=2, hidden=32, lr=0.01, weight_decay=1e-4, k=11),
}


def published_config(dataset: str, **changes: Any) -> ASGATConfig:
    """The published settings of a data set, on the table all benchmarks share."""
    if dataset not in PUBLISHED:
        raise AsgatError(f"No published settings for {dataset!r}. {suggest(dataset, list(PUBLISHED))}")
    config = make_config("asgat-cheb", **{**PUBLISHED[dataset], **TABLE, **changes})
    assert isinstance(config, ASGATConfig)
    return config
