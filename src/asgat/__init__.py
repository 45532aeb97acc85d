"""Adaptive spectral graph attention: node classification on graphs of any homophily.

The public names below are imported when they are first used, so that ``import asgat`` itself is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asgat import moved

if TYPE_CHECKING:
    from asgat.data import load_dataset
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.graph import Graph
    from asgat.nn import ASGAT, ASGATConv, ASGATDeep, SpectralFilterConv
    from asgat.tabular.assembly import read_graph
    from asgat.tabular.conversions import as_user_graph

__all__ = [
    "ASGAT",
    "ASGATClassifier",
    "ASGATConv",
    "ASGATDeep",
    "Graph",
    "SpectralFilterConv",
    "__version__",
    "as_user_graph",
    "load_dataset",
    "read_graph",
]
__version__ = "0.1.0"

_PUBLIC = {
    "ASGAT": "asgat.nn",
    "ASGATClassifier": "asgat.estimator.classifier",
    "ASGATConv": "asgat.nn",
    "ASGATDeep": "asgat.nn",
    "Graph": "asgat.graph",
    "SpectralFilterConv": "asgat.nn",
    "as_user_graph": "asgat.tabular.conversions",
    "load_dataset": "asgat.data",
    "read_graph": "asgat.tabular.assembly",
}
moved.install()


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'asgat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
