"""Names and modules of version 0.1 that have moved: they stay importable in 0.2, with a warning."""

import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "asgat.attention": "asgat.nn.attention",
    "asgat.classifier": "asgat.estimator.classifier",
    "asgat.connections": "asgat.nn.connections",
    "asgat.coupling": "asgat.graph.cocitation",
    "asgat.data.convert": "asgat.disk.converter",
    "asgat.data.on_disk": "asgat.disk.disk_graph",
    "asgat.data.own_graph": "asgat.tabular.conversions",
    "asgat.data.registry": "asgat.data.datasets",
    "asgat.data.tabular": "asgat.tabular.assembly",
    "asgat.embedding": "asgat.nn.deepwalk",
    "asgat.filters.base": "asgat.filters.spectral_filter",
    "asgat.health": "asgat.estimator.health",
    "asgat.homophily": "asgat.graph.homophily",
    "asgat.nn.committee": "asgat.nn.ensemble",
    "asgat.predictions": "asgat.estimator.predictions",
    "asgat.similar": "asgat.graph.knn_edges",
    "asgat.sparse_features": "asgat.kernels.sparse_features",
    "asgat.spectral.table": "asgat.tables.table_operator",
}
NAMES = {  # those with another name, or in another place than the rest of their module
    "asgat.coupling.coupling_graph": "asgat.graph.cocitation.cocitation_graph",
    "asgat.data.own_graph.OwnGraph": "asgat.tabular.user_graph.UserGraph",
    "asgat.data.own_graph.as_own_graph": "asgat.tabular.conversions.as_user_graph",
    "asgat.nn.committee.Committee": "asgat.nn.ensemble.Ensemble",
    "asgat.similar.join_similar": "asgat.graph.knn_edges.add_knn_edges",
    "asgat.spectral.ArmaTableOperator": "asgat.tables.ArmaTableOperator",
    "asgat.spectral.TableOperator": "asgat.tables.TableOperator",
}


def moved_name(module: str, name: str) -> Any:
    """What used to be ``module.name``; also a package's ``__getattr__``, as ``partial(moved_name, __name__)``."""
    old = f"{module}.{name}"
    new = NAMES.get(old) or (f"{MODULES[module]}.{name}" if module in MODULES else "")
    place, _, new_name = new.rpartition(".")
    if not place or not hasattr(import_module(place), new_name):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if module not in MODULES:  # else its import has warned
        _warn(old, new)
    return getattr(import_module(place), new_name)


def install() -> None:
    """Lets the old modules be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder:
    """Finds an old module, as a stand-in that looks its names up in the new one."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MODULES else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """As modules usually are."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        _warn(name, MODULES[name])
        module.__getattr__ = partial(moved_name, name)  # type: ignore[method-assign]


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; the old path will be removed in 0.3.", DeprecationWarning, stacklevel=3)
