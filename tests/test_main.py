import runpy
import subprocess
import sys

import pytest

from asgat import __version__


def test_python_m_asgat_prints_the_version():
    done = subprocess.run([sys.executable, "-m", "asgat", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


def test_python_m_asgat_is_the_command_line(monkeypatch):
    called = []
    monkeypatch.setattr("asgat.cli.main", lambda: called.append(True))
    runpy.run_module("asgat", run_name="__main__")
    assert called == [True]


def test_importing_it_runs_nothing(monkeypatch):
    monkeypatch.setattr("asgat.cli.main", lambda: pytest.fail("an import ran the command line"))
    runpy.run_module("asgat.__main__", run_name="asgat.__main__")


def test_the_command_line_starts_without_torch():
    """`--help` and `--version` answer at once: what is slow to import is imported where it is used."""
    code = "import sys, asgat.cli; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
