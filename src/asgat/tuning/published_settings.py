"""The settings the paper's authors published for ASGAT; every part of the package takes them from here."""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

CHEBYSHEV: dict[str, Settings] = {
    "texas": dict(order=16, dropout=0.1, heads=2, hidden=128, lr=0.06, weight_decay=5e-4, k=13),
    "cornell": dict(order=16, dropout=0.0, heads=6, hidden=32, lr=0.1, weight_decay=5e-4, k=17),
    "wisconsin": dict(order=10, dropout=0.0, heads=4, hidden=128, lr=0.1, weight_decay=8e-4, k=20),
    "chameleon": dict(order=8, dropout=0.4, heads=12, hidden=88, lr=0.01, weight_decay=1e-3, k=6),
    "squirrel": dict(order=16, dropout=0.5, heads=8, hidden=256, lr=0.008, weight_decay=5e-5, k=6),
    "cora": dict(order=14, dropout=0.1, heads=1, hidden=32, lr=0.005, weight_decay=1e-4, k=15),
    "citeseer": dict(order=14, dropout=0.2, heads=9, hidden=512, lr=0.005, weight_decay=8e-4, k=11, self_loops="add"),
    # Not published: the settings with which their program was timed on Pubmed.
    "pubmed": dict(order=15, dropout=0.1, heads=2, hidden=32, lr=0.01, weight_decay=1e-4, k=11),
}
EXACT: dict[str, Settings] = {
    "texas": dict(dropout=0.1, heads=8, hidden=128, lr=0.06, weight_decay=5e-4, k=13),
    "cornell": dict(dropout=0.1, heads=3, hidden=32, lr=0.1, weight_decay=5e-4, k=17),
    "wisconsin": dict(dropout=0.0, heads=5, hidden=128, lr=0.1, weight_decay=8e-4, k=20),
}


def published_settings(dataset: str, operator: str = "chebyshev") -> Settings:
    """The published settings for a data set and an operator; those of Chebyshev if the operator has none."""
    return dict((EXACT if operator == "exact" else {}).get(dataset, CHEBYSHEV[dataset]))
