"""Mutation testing of the numerics: ``python -m tests.mutation.run``.

A seeded sample of faults (:mod:`tests.mutation.mutants`) is put into the modules below, one at a time, and the tests of
the module are run until one fails. The outcome of every mutant is a line of a log; started again, the command goes on
where it was, and mutants of a function that has changed are new ones. A fresh process per mutant is forked from one
that has the libraries loaded; kernels of a mutated module are compiled into a folder of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.util
import io
import json
import os
import signal
import sys
import tempfile
import time
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from filelock import FileLock
from tests.mutation.mutants import Mutant, list_mutants, mutate

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
LOG = ROOT / "docs" / "results" / "mutants.jsonl"
FOLDERS = (SOURCE / "asgat" / "spectral", SOURCE / "asgat" / "tables")
MODULES = sorted(path.relative_to(SOURCE) for folder in FOLDERS for path in folder.glob("*.py"))
MODULES = [path for path in MODULES if path.name != "__init__.py"]
MODULES += [Path("asgat/nn/attention.py"), Path("asgat/training/early_stopping.py")]
# Where a module is used through another one, the tests of that other are its own too.
ALSO = {
    "spectral_operator": ["tests/spectral/test_exact_operator.py", "tests/spectral/test_chebyshev_operator.py"],
    "candidate_table": ["tests/tables/test_exact_builder.py"],
    "certificate": ["tests/tables/test_table_operator.py"],
    "exact_builder": ["tests/tables/test_table_operator.py"],
}
AT_LEAST = 4  # mutants per module


def own_tests(module: Path) -> list[str]:
    inner = module.relative_to("asgat")
    return [str(Path("tests") / inner.parent / f"test_{inner.stem}.py"), *ALSO.get(inner.stem, [])]


def sample(count: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Mutants in proportion to what a module offers, a few from each; a change of one function leaves the others'."""
    every = {module: list_mutants((SOURCE / module).read_text(encoding="utf-8")) for module in MODULES}
    total, chosen = sum(map(len, every.values())), []
    for module, mutants in every.items():
        share = max(AT_LEAST, round(count * len(mutants) / total))
        drawn = sorted(mutants, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())[:share]
        chosen += [(module, mutant) for mutant in sorted(drawn, key=lambda mutant: mutant.number)]
    return chosen


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module in another file than its own."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = SourceFileLoader(fullname, str(self.path))
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


def preload() -> None:
    """What every run of the tests imports, without the package itself."""
    for name in ("hypothesis", "numba", "pytest", "scipy.sparse.linalg", "scipy.stats", "torch_geometric.data"):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)


def outcome(module: Path, number: int | None, examples: int, limit: float) -> tuple[str, str]:
    """``killed``, ``timeout`` or ``survived``, and the test that told; ``number`` None runs the module as it is."""
    source = (SOURCE / module).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            os.setpgid(0, 0)
            os._exit(_child(module, source if number is None else mutate(source, number), folder, examples, write))
        os.close(write)
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
        end = time.monotonic() + limit
        status = None
        while status is None and time.monotonic() < end:
            done, code = os.waitpid(child, os.WNOHANG)
            status = code if done else None
            time.sleep(0.02)
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)  # the whole group: tests may start processes of their own
        if status is None:
            os.waitpid(child, 0)
        with os.fdopen(read, "rb") as pipe:
            os.set_blocking(read, False)
            told = (pipe.read() or b"").decode("utf-8", "replace")
    if status is None:
        return "timeout", ""
    if status and not told and not os.WIFSIGNALED(status):
        raise RuntimeError(f"the tests of {module} could not be run: {os.waitstatus_to_exitcode(status)}")
    return ("survived", "") if status == 0 else ("killed", told or f"signal {os.WTERMSIG(status)}")


def _child(module: Path, mutated: str, folder: str, examples: int, pipe: int) -> int:
    import pytest

    class Told:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                os.write(pipe, report.nodeid.encode()[:400])

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                os.write(pipe, b"while it was imported")

    file = Path(folder) / module.name
    file.write_text(mutated, encoding="utf-8")
    sys.meta_path.insert(0, Finder(".".join(module.with_suffix("").parts), file))
    os.environ["ASGAT_TEST_EXAMPLES"] = str(examples)
    os.chdir(ROOT)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "-m", "not slow"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are loaded already
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for test in own_tests(module):
            code = int(pytest.main([*options, test], plugins=[Told()]))
            if code:
                return code
    return 0


def read_log(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return {row["key"]: row for row in rows}


def write_log(path: Path, keys: list[str], row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Adds a line to what is there by now; lines of a mutant no longer in the sample go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(Path(tempfile.gettempdir()) / f"{path.name}.lock"):
        log = read_log(path) | {row["key"]: row}
        text = "".join(json.dumps(log[key]) + "\n" for key in keys if key in log)
        path.with_suffix(".part").write_text(text, encoding="utf-8")
        path.with_suffix(".part").replace(path)
    return log


def is_there(module: Path, mutant: Mutant) -> bool:
    """Whether the source is still the one the mutant was drawn from."""
    now = list_mutants((SOURCE / module).read_text(encoding="utf-8"))
    return mutant.number < len(now) and now[mutant.number] == mutant


def summary(rows: list[dict[str, Any]]) -> str:
    equivalent = sum(row["outcome"] == "survived" and "equivalent" in row for row in rows)
    survived = sum(row["outcome"] == "survived" and "equivalent" not in row for row in rows)
    counted = len(rows) - equivalent
    share = 100.0 * survived / max(counted, 1)
    return f"{len(rows)} mutants, {equivalent} equivalent, {counted} counted, {survived} survived ({share:.1f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=220)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=8, help="hypothesis examples per test")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds per mutant")
    parser.add_argument("--seconds", type=float, default=560.0, help="stop after that long; start again to go on")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--check", action="store_true", help="only see that the tests pass on the modules as they are")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--part", default="1/1", help="2/3 tries the second of every three, beside others")
    options = parser.parse_args()
    chosen, log = sample(options.count, options.seed), read_log(options.log)
    preload()
    if options.check:
        for module in MODULES:
            print(module, *outcome(module, None, options.examples, 10 * options.limit), flush=True)
        return
    end = time.monotonic() + options.seconds
    keys = [f"{module.relative_to('asgat')}:{mutant.key}" for module, mutant in chosen]
    mine, parts = map(int, options.part.split("/"))
    for (module, mutant), key in list(zip(chosen, keys, strict=True))[mine - 1 :: parts]:
        row = log.get(key)
        known = row is not None and not (options.again and row["outcome"] == "survived" and "equivalent" not in row)
        if known or time.monotonic() > end or not is_there(module, mutant):
            continue
        began = time.monotonic()
        result, told = outcome(module, mutant.number, options.examples, options.limit)
        took = time.monotonic() - began
        print(f"{module} {mutant.line} {mutant.what}: {result} {told} ({took:.0f} s)", flush=True)
        row = {"key": key, "line": mutant.line, "what": mutant.what, "outcome": result}
        log = write_log(options.log, keys, row | ({"by": told} if told else {}))
    rows = [log[key] for key in keys if key in log]
    left = len(chosen) - len(rows)
    print(summary(rows) + (f"; {left} still to try: start again" if left else ""))


if __name__ == "__main__":
    main()
