"""The rules of the source tree: which way imports point, how modules are named, what stands at the top."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "asgat"

# Packages and top-level modules from low to high: a module imports from its own package or a lower one.
LAYERS = [
    ["errors", "lazy", "memory", "threads"],
    *(["files"], ["config"], ["kernels"], ["graph"], ["filters"], ["spectral"], ["tables"], ["nn"]),
    *(["data"], ["recipe"], ["tabular"], ["disk"], ["training"], ["distributed"], ["leaderboard"]),
    *(["estimator"], ["explain"]),
    *(["report"], ["tuning"], ["cli"], ["__main__"]),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PUBLISHED = {"mlp", "heat"}  # named after the same published thing
TOP_LEVEL = 10

Check = Callable[[Path], list[str]]


def modules(source: Path) -> dict[str, Path]:
    """The modules of a package by name; a package is the module of its ``__init__.py``."""
    paths = [path.relative_to(source) for path in sorted(source.rglob("*.py"))]
    parts = [(*path.parent.parts, *([] if path.stem == "__init__" else [path.stem])) for path in paths]
    return {".".join((source.name, *part)): source / path for part, path in zip(parts, paths, strict=True)}


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Line and target of every import of a module, wherever it stands: in functions, in its stub, by a call."""
    stub = path.with_suffix(".pyi")
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in (path, stub) if file.exists()]
    for node in chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
            base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
            base = base if node.level else node.module or ""
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner != "asgat.__version__":
                    yield node.lineno, inner if inner in known else base
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def inner_imports(source: Path) -> Iterator[tuple[str, int, str]]:
    """Importing module, line and imported module, for imports inside the package; the root may import everything."""
    known = modules(source)
    for name, path in known.items():
        if name == source.name:
            continue
        for line, target in imports(name, path, known):
            if target.split(".")[0] == source.name:
                yield name, line, target


def wrong_way_imports(source: Path) -> list[str]:
    found = [f"{name} has no place in the order of packages" for name in modules(source) if _layer(name, 0) is None]
    for name, line, target in inner_imports(source):
        low, high = _layer(target, len(LAYERS)), _layer(name, 0)
        if low is not None and high is not None and low > high:
            found.append(f"{name}, line {line}, imports {target}")
    return found


def _layer(name: str, root: int) -> int | None:
    return RANK.get(name.split(".")[1]) if "." in name else root


def shared_basenames(source: Path) -> list[str]:
    places = defaultdict(list)
    for path in modules(source).values():
        place = path.relative_to(source)
        if place.parts[0] not in ("kernels", "cli") and place.stem not in (*PUBLISHED, "__init__", "__main__"):
            places[place.stem].append(str(place))
    return [" and ".join(sorted(paths)) for paths in places.values() if len(paths) > 1]


def typer_outside_cli(source: Path) -> list[str]:
    known = modules(source)
    return [
        f"{name}, line {line}, imports {target}"
        for name, path in known.items()
        for line, target in imports(name, path, known)
        if target.split(".")[0] == "typer" and not name.startswith(f"{source.name}.cli")
    ]


def crowded_top_level(source: Path) -> list[str]:
    names = sorted(path.stem for path in source.glob("*.py") if not path.stem.startswith("__"))
    return [f"{len(names)} modules at the top: {', '.join(names)}"] if len(names) > TOP_LEVEL else []


def import_cycles(source: Path) -> list[str]:
    """Cycles of modules; one is reported for each import that closes it."""
    known, edges = modules(source), defaultdict(set)
    for name, _, target in inner_imports(source):
        if target in known and target not in (name, source.name):
            edges[name].add(target)
    found: list[str] = []
    while True:
        try:
            TopologicalSorter(edges).prepare()
            return found
        except CycleError as error:
            cycle = error.args[1][::-1]
            found.append(" imports ".join(cycle))
            edges[cycle[0]].discard(cycle[1])


CHECKS: list[Check] = [wrong_way_imports, shared_basenames, typer_outside_cli, crowded_top_level, import_cycles]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_rule(check):
    violations = check(SOURCE)
    assert not violations, "\n".join(violations)


GOOD = {
    "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from asgat.nn.model import Model",
    "errors.py": "import json",
    "recipe.py": "from asgat import __version__\nfrom asgat.nn import model\nfrom asgat.errors import AsgatError",
    "nn/__init__.py": "from asgat.nn.model import Model",
    "nn/model.py": "from asgat.graph.graph import Graph\nimport torch",
    "nn/mlp.py": "",
    "filters/mlp.py": "from . import heat",
    "filters/heat.py": "",
    "graph/__init__.py": "",
    "graph/graph.py": "from asgat import errors",
    "kernels/select.py": "",
    "kernels/cpu/select.py": "",
    "cli/app.py": "def run():\n    import typer\n    from asgat.nn.model import Model",
    "cli/model.py": "",
}


@pytest.fixture
def plant(tmp_path):
    """A function that writes a small package without faults, then the given files, and returns its folder."""

    def write(**files):
        for name, text in {**GOOD, **files}.items():
            path = tmp_path / "asgat" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "asgat"

    return write


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_tree_without_faults_passes(check, plant):
    assert check(plant()) == []


@pytest.mark.parametrize(
    ("check", "files", "found"),
    [
        (wrong_way_imports, {"graph/hops.py": "import asgat.nn.model"}, "graph.hops, line 1, imports asgat.nn.model"),
        (wrong_way_imports, {"graph/hops.py": "from asgat import nn"}, "graph.hops, line 1, imports asgat.nn"),
        (wrong_way_imports, {"graph/hops.py": "from ..nn.model import Model"}, "line 1, imports asgat.nn.model"),
        (wrong_way_imports, {"graph/hops.py": "from ..nn import model"}, "line 1, imports asgat.nn.model"),
        (wrong_way_imports, {"graph/__init__.py": "from ..nn import model"}, "asgat.graph, line 1, imports asgat.nn"),
        (wrong_way_imports, {"graph/hops.py": "def lazy():\n    from asgat.nn.model import Model"}, "line 2, imports"),
        (wrong_way_imports, {"graph/hops.py": "if TYPE_CHECKING:\n    from asgat.nn import Model"}, "line 2, imports"),
        (wrong_way_imports, {"graph/__init__.pyi": "from asgat.nn.model import M as M"}, "asgat.graph, line 1"),
        (wrong_way_imports, {"graph/hops.py": "importlib.import_module('asgat.nn.model')"}, "line 1, imports"),
        (wrong_way_imports, {"graph/hops.py": "from asgat import ASGAT"}, "graph.hops, line 1, imports asgat"),
        (wrong_way_imports, {"errors.py": "from asgat.files.lock import locked"}, "errors, line 1, imports"),
        (wrong_way_imports, {"strange/one.py": ""}, "asgat.strange.one has no place"),
        (shared_basenames, {"nn/graph.py": ""}, "graph/graph.py and nn/graph.py"),
        (shared_basenames, {"graph/recipe.py": ""}, "graph/recipe.py and recipe.py"),
        (typer_outside_cli, {"graph/hops.py": "def lazy():\n    import typer"}, "graph.hops, line 2, imports typer"),
        (typer_outside_cli, {"recipe.py": "from typer.testing import CliRunner"}, "imports typer.testing"),
        (crowded_top_level, {f"top_{i}.py": "" for i in range(9)}, "11 modules at the top: errors, recipe, top_0"),
        (
            import_cycles,
            {"graph/graph.py": "import asgat.graph.b", "graph/b.py": "from .graph import G"},
            "asgat.graph",
        ),
        (import_cycles, {"nn/model.py": "def lazy():\n    from asgat.nn import Model"}, "asgat.nn.model"),
    ],
)
def test_a_planted_fault_is_found(check, files, found, plant):
    violations = check(plant(**files))
    assert len(violations) == 1
    assert found in violations[0]
