import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from asgat.cli.models import TYPICAL

HEAVY = {"torch", "torch_geometric", "sklearn", "scipy", "numba", "matplotlib", "pandas", "networkx", "numpy"}


def imported(code, *arguments):
    """The heavy packages that a new process imports which runs some code."""
    shown = (
        f"{code}\nimport sys; print(*({HEAVY!r} & {{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", shown, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()) if done.stderr.strip() else set()


COMMAND = """
import sys
from asgat.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code
"""


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["fit", "--help"], set()),
        (["models"], set()),
        (["runs", str(Path(__file__).parent / "fixtures")], set()),
        (["datasets"], {"numpy", "scipy"}),
    ],
    ids=lambda value: "-".join(sorted(value)) or "none",
)
def test_lists_and_help_need_no_pytorch(words, allowed, tmp_path, monkeypatch):
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path))
    assert imported(COMMAND, *words) <= allowed


def test_the_classifier_is_imported_without_what_it_may_not_need():
    assert imported("from asgat import ASGATClassifier") <= {"torch", "numpy", "scipy"}
    code = "from asgat import ASGATClassifier; import sys; assert 'scipy.stats' not in sys.modules\n"
    assert imported(code + "assert 'scipy.sparse.linalg' not in sys.modules") >= {"torch"}


@pytest.mark.parametrize(
    ("model", "pyg"), [("asgat-plus", False), ("asgat-deep", False), ("mlp", False), ("gcn", True)]
)
def test_pyg_is_imported_by_the_models_that_are_made_of_its_layers(model, pyg):
    size = TYPICAL["features"], TYPICAL["classes"], TYPICAL["nodes"]
    code = f"from asgat.nn.registry import *\nmodel_spec({model!r}).make(make_config({model!r}), *{size})"
    assert ("torch_geometric" in imported(code)) == pyg


def test_a_name_is_imported_when_it_is_used(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    package.mkdir()
    lazy = "from asgat.lazy import lazy_package\n__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)"
    (package / "__init__.py").write_text(lazy)
    stub = "from some_package.one import One as One\nfrom some_package.absent import Two as Two\n\nTHREE: int\n"
    (package / "__init__.pyi").write_text(stub)
    (package / "one.py").write_text("class One: pass")
    monkeypatch.syspath_prepend(tmp_path)
    import some_package  # type: ignore[import-not-found]

    assert "some_package.one" not in sys.modules
    assert some_package.__all__ == ["One", "Two"]
    assert {"One", "Two", "__name__"} <= set(dir(some_package))
    assert some_package.One is some_package.one.One
    assert vars(some_package)["One"] is some_package.One, "found once"
    from some_package import one

    assert one.One is some_package.One
    with pytest.raises(AttributeError, match="module 'some_package' has no attribute 'Three'"):
        _ = some_package.Three
    with pytest.raises(ModuleNotFoundError):
        _ = some_package.Two


@pytest.mark.parametrize("package", ["asgat", "asgat.nn", "asgat.nn.baselines", "asgat.data", "asgat.training"])
def test_packages_offer_what_they_list(package):
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        assert name == "__version__" or name == name.upper() or value.__name__ == name
