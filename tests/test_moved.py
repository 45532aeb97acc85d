"""Old import paths: they lead to the same objects as the new ones, with a warning that names the new path."""

import subprocess
import sys
from importlib import import_module

import pytest

from asgat.moved import MODULES, NAMES, install

# What examples and documents of version 0.1 imported, and public classes of the modules that moved.
IMPORTED = {
    "asgat.attention": ["SparseAttention", "attend"],
    "asgat.classifier": ["ASGATClassifier"],
    "asgat.connections": ["gcn_layer", "deepwalk_matrix"],
    "asgat.data.own_graph": ["from_networkx", "from_pyg", "from_frames"],
    "asgat.data.registry": ["load_dataset"],
    "asgat.data.tabular": ["read_graph"],
    "asgat.embedding": ["Embedding", "deepwalk"],
    "asgat.filters.base": ["SpectralFilter"],
    "asgat.homophily": ["beta"],
    "asgat.predictions": ["predictions_of"],
    "asgat.sparse_features": ["SparseFeatures"],
    "asgat.spectral.table": ["TableOperator"],
}


@pytest.fixture(params=MODULES)
def module(request):
    """An old module, not imported yet."""
    sys.modules.pop(request.param, None)
    yield request.param
    sys.modules.pop(request.param, None)


def test_an_old_module_has_the_names_of_the_new_one(module):
    with pytest.warns(DeprecationWarning, match=f"{module} is now {MODULES[module]}") as caught:
        old = import_module(module)
    assert caught[0].filename.endswith(("test_moved.py", "importlib/__init__.py")), "it points at who imports"
    new = import_module(MODULES[module])
    public = [name for name, value in vars(new).items() if getattr(value, "__module__", "") == new.__name__]
    assert public
    assert all(getattr(old, name) is getattr(new, name) for name in public)
    for name in IMPORTED.get(module, []):
        assert callable(getattr(old, name))
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'never'"):
        _ = old.never


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_name_is_the_new_one(name):
    (place, old), (new_place, new) = name.rsplit(".", 1), NAMES[name].rsplit(".", 1)
    assert getattr(import_module(place), old) is getattr(import_module(new_place), new)


def test_a_moved_name_of_a_package_warns():
    with pytest.warns(DeprecationWarning, match=r"asgat\.spectral\.TableOperator is now asgat\.tables\.TableOperator"):
        from asgat.spectral import TableOperator
    assert TableOperator is import_module("asgat.tables").TableOperator
    with pytest.raises(ImportError, match="never"):
        from asgat.spectral import never  # noqa: F401


def test_all_that_was_imported_is_covered():
    assert set(IMPORTED) <= set(MODULES)
    finders = len(sys.meta_path)
    install()
    assert len(sys.meta_path) == finders, "installed once, with the package"


def test_an_example_of_version_0_1_runs():
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from asgat.classifier import ASGATClassifier\n"
        "from asgat.coupling import coupling_graph\n"
        "from asgat.data.own_graph import OwnGraph\n"
        "import asgat.homophily\n"
        "print(ASGATClassifier.__module__, coupling_graph.__name__, asgat.homophily.beta.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["asgat.estimator.classifier", "cocitation_graph", "asgat.graph.homophily"]
