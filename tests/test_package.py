"""The package as a whole: what it ships, what it exports, and that tests mirror its modules."""

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import asgat

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "asgat"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DATA_FILES = sorted(
    str(path.relative_to(SOURCE))
    for path in SOURCE.rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts
)
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
# A path that exists on one machine only, other than an address such as https://example.org/home/x.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users)/\w")


# One operator, several implementations: tests/kernels/test_<operator>.py tries all of them on every device.
IMPLEMENTATIONS = {Path("kernels/cpu"), Path("kernels/cuda")}
# What implementations share; the tests of the operators are theirs.
SHARED = {Path("kernels/cpu/jit.py")}


def mirror(module):
    name = "main" if module.name == "__main__.py" else module.stem
    folder = module.parent.parent if module.parent in IMPLEMENTATIONS else module.parent
    return Path("tests") / folder / f"test_{name}.py"


@pytest.mark.parametrize("module", [module for module in MODULES if module not in SHARED], ids=str)
def test_every_module_has_its_mirrored_test_file(module):
    path = ROOT / mirror(module)
    assert path.is_file(), f"{mirror(module)} is missing"
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^\s*(async )?def test_|^class .*\(.*(Conformance|Tests?)\b", text, re.MULTILINE), (
        f"{mirror(module)} has no test"
    )


def test_the_mirror():
    assert mirror(Path("filters/heat.py")) == Path("tests/filters/test_heat.py")
    assert mirror(Path("config.py")) == Path("tests/test_config.py")
    assert mirror(Path("__main__.py")) == Path("tests/test_main.py")
    assert mirror(Path("kernels/select.py")) == Path("tests/kernels/test_select.py")
    assert mirror(Path("kernels/cpu/select.py")) == mirror(Path("kernels/cuda/select.py"))
    assert mirror(Path("kernels/cuda/select.py")) == Path("tests/kernels/test_select.py")
    assert mirror(Path("nn/baselines/gcn.py")) == Path("tests/nn/baselines/test_gcn.py")
    assert {Path("config.py"), Path("nn/asgat_conv.py"), Path("data/datasets.py")} <= set(MODULES)


def test_implementations_are_those_of_an_operator_and_nothing_else_is_excepted():
    """A file in these folders is a helper of that list or has the name of an operator."""
    for module in MODULES:
        if module.parent in IMPLEMENTATIONS and module not in SHARED:
            assert module.parent.parent / module.name in MODULES, f"{module} implements no operator"
    assert set(MODULES) >= SHARED, "the list names a file that does not exist"
    assert all(module.parent in IMPLEMENTATIONS for module in SHARED)


def test_every_folder_of_modules_is_a_package():
    for module in MODULES:
        assert (SOURCE / module.parent / "__init__.py").is_file(), f"{module.parent} has no __init__.py"


def test_recipes_checksums_and_the_typing_marker_are_in_the_package():
    package = files("asgat")
    assert (package / "py.typed").is_file()
    assert (package / "recipes" / "csbm.toml").is_file()
    assert (package / "data" / "checksums.txt").is_file()
    assert {"py.typed", "recipes/csbm.toml", "data/checksums.txt"} <= set(DATA_FILES)
    assert [name for name in DATA_FILES if not (package / name).is_file()] == []


def test_the_wheel_is_built_from_the_folder_that_holds_them():
    """hatchling puts every file below a package into the wheel, unless git ignores it or an option leaves it out."""
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/asgat"]}
    assert set(PROJECT["tool"]["hatch"]["build"]) == {"targets"}
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: git cannot be asked what it ignores")
    ignored = subprocess.run(
        ["git", "check-ignore", *[f"src/asgat/{name}" for name in DATA_FILES]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ignored.returncode, ignored.stdout) == (1, ""), "git ignores a file the package needs"


def test_importing_the_package_is_quick():
    """Nothing that takes long is imported until a name is used."""
    code = (
        "import sys, asgat\n"
        "heavy = {'torch', 'numpy', 'scipy', 'numba', 'sklearn', 'matplotlib', 'typer', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert set(asgat.__all__) <= set(dir(asgat))\n"
        "assert not heavy & set(sys.modules), 'listing the names imports nothing'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_those_of_their_modules():
    from asgat import (
        ASGAT,
        ASGATClassifier,
        ASGATConv,
        ASGATDeep,
        Graph,
        SpectralFilterConv,
        as_user_graph,
        load_dataset,
        read_graph,
    )

    modules: dict[str, tuple[Any, ...]] = {
        "asgat.nn": (ASGAT, ASGATConv, ASGATDeep, SpectralFilterConv),
        "asgat.graph": (Graph,),
        "asgat.data": (load_dataset,),
        "asgat.estimator.classifier": (ASGATClassifier,),
        "asgat.tabular.assembly": (read_graph,),
        "asgat.tabular.conversions": (as_user_graph,),
    }
    for module, values in modules.items():
        for value in values:
            assert getattr(importlib.import_module(module), value.__name__) is value
    assert set(asgat.__all__) == {value.__name__ for values in modules.values() for value in values} | {"__version__"}
    with pytest.raises(AttributeError, match="module 'asgat' has no attribute 'GAT'"):
        _ = asgat.GAT  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="GAT"):
        from asgat import GAT  # type: ignore[attr-defined]  # noqa: F401


def test_the_version_is_one():
    assert re.fullmatch(r"\d+\.\d+\.\d+([ab.]\w+)?", asgat.__version__)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/asgat/__init__.py"
    assert metadata.version("asgat") == asgat.__version__
    citation, changelog = ((ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md"))
    latest = re.search(r"^## (\S+) - (\S+)$", changelog, re.MULTILINE)
    assert latest is not None
    assert latest[1] == asgat.__version__
    assert f"\nversion: {asgat.__version__}\ndate-released: {latest[2]}\n" in citation


def test_the_command_is_installed():
    (command,) = metadata.entry_points(group="console_scripts", name="asgat")
    assert PROJECT["project"]["scripts"] == {"asgat": command.value}
    from asgat.cli import main

    assert command.load() is main


def test_what_is_imported_is_declared():
    """Every third-party package a module imports is a dependency or an extra."""
    extras = PROJECT["project"]["optional-dependencies"]
    declared = [*PROJECT["project"]["dependencies"], *(e for key in extras if key != "dev" for e in extras[key])]
    names = {re.split(r"[<>=\[ ]", entry)[0].lower().replace("-", "_") for entry in declared}
    names = {{"scikit_learn": "sklearn"}.get(name, name) for name in names}
    names.add("requests")  # pooch depends on it; its exceptions say what went wrong in a download
    imported = set()
    for module in SOURCE.rglob("*.py"):
        for line in module.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\s*(?:from|import) ([a-z_][a-z_0-9]*)[\w. ]*(?: import .*)?$", line):
                imported.add(match[1])
    foreign = imported - set(sys.stdlib_module_names) - {"asgat"}
    assert {"torch", "numpy"} <= foreign
    assert foreign - names == set()


def texts():
    places = ["src", "reproduce", "docs", "tests", ".ci"]
    tree = [path for place in places for path in (ROOT / place).rglob("*") if path.is_file()]
    names = ["README.md", "Makefile", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"]
    for path in [*tree, *(ROOT / name for name in [*names, "constraints.txt"])]:
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            if b"\0" not in content:
                yield path.relative_to(ROOT), content.decode("utf-8")


def test_no_text_names_a_place_on_one_machine():
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_machine_path_pattern_can_find_something():
    assert MACHINE_PATH.search("cd " + "/wor" + "k/main")
    assert MACHINE_PATH.search('open("' + "/ro" + 'ot/data.csv")')
    assert MACHINE_PATH.search("~ is " + "/ho" + "me/someone")
    assert not MACHINE_PATH.search("https://example.org" + "/wor" + "k/page")
    assert not MACHINE_PATH.search(".." + "/wor" + "k/page")
    assert {Path("src/asgat/config.py"), Path("tests/test_package.py"), Path("Makefile")} <= {p for p, _ in texts()}


@pytest.mark.slow
def test_the_wheel_finds_its_files_outside_the_checkout(tmp_path):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed, and without it no wheel can be built offline")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"asgat/{name}" for name in DATA_FILES} <= set(archive.namelist())
        assert {f"asgat/{name}" for name in map(str, MODULES)} <= set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import asgat, asgat.recipe as r, asgat.data.download as d\n"
        "assert asgat.__file__.startswith(sys.argv[1]), asgat.__file__\n"
        "assert r.read_recipe('csbm') and d.checksums()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "installed")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
