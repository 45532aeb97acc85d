"""Adaptive spectral graph attention: node classification on graphs of any homophily.

The public names below are imported when they are first used, so that ``import asgat`` itself is quick.
"""

from typing import TYPE_CHECKING

from asgat import moved
from asgat.lazy import lazy_names

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
    "ASGAT": "asgat.nn.asgat",
    "ASGATClassifier": "asgat.estimator.classifier",
    "ASGATConv": "asgat.nn.asgat_conv",
    "ASGATDeep": "asgat.nn.deep",
    "Graph": "asgat.graph.graph",
    "SpectralFilterConv": "asgat.nn.filter_conv",
    "as_user_graph": "asgat.tabular.conversions",
    "load_dataset": "asgat.data.datasets",
    "read_graph": "asgat.tabular.assembly",
}
moved.install()

__getattr__ = lazy_names(__name__, _PUBLIC)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
