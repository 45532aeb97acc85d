import runpy
import subprocess
import sys

import pytest

from asgat import __version__


def test_python_m_asgat_prints_the_version(asgat):
    assert asgat("--version", process=True) == (0, f"{__version__}\n", "")


def test_python_m_asgat_is_the_command_line(monkeypatch):
    called = []
    monkeypatch.setattr("asgat.cli.main", lambda: called.append(True))
    runpy.run_module("asgat", run_name="__main__")
    assert called == [True]


def test_importing_the_module_runs_nothing(monkeypatch):
    monkeypatch.setattr("asgat.cli.main", lambda: pytest.fail("an import ran the command line"))
    runpy.run_module("asgat.__main__", run_name="asgat.__main__")


def test_the_command_line_starts_without_torch():
    """`--help` and `--version` are fast: slow imports are made where they are used."""
    code = "import sys, asgat.cli; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("scatter does not have a deterministic implementation, but …"), "scatter is not deterministic"),
        (
            RuntimeError("CUDA out of memory. Tried to allocate 9 GiB.\nsee the manual"),
            "not enough memory: CUDA out of",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "not enough memory: DefaultCPU"),
        (MemoryError(), "not enough memory: none is left"),
        (RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nSearch for"), "--device cpu"),
    ],
)
def test_hardware_errors_are_reported_in_a_sentence(capsys, error, sentence):
    from asgat.cli import app as cli

    def raising(standalone_mode):
        raise error

    with pytest.raises(SystemExit) as left:
        cli.main(raising)
    message = capsys.readouterr().err
    assert left.value.code == 2
    assert sentence in message
    assert "Search for" not in message
    assert ".." not in message


def test_other_errors_are_raised():
    from asgat.cli import app as cli

    def raising(standalone_mode):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        cli.main(raising)
