"""Packages that offer names without importing their modules until they are used."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_package(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package that offers the names its stub imports.

    Every line ``from MODULE import NAME as NAME`` of ``__init__.pyi``, next to the package's ``file``, is a name; it is
    imported when it is first used. Type checkers read the same lines.
    """
    lines = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    places = {line.split()[3]: line.split()[1] for line in lines if line.startswith("from ")}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *places}), sorted(places)
