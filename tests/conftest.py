"""One reproducible hypothesis profile for all tests, the command line, and the published data files if available."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from asgat.files.raw_file import RawFile

pytest.register_assert_rewrite("tests.strategies", "tests.dense", "tests.spectral.conformance")

settings.register_profile(
    "asgat",
    deadline=None,  # the first call into torch takes its time
    max_examples=int(os.environ.get("ASGAT_TEST_EXAMPLES", "40")),  # fewer where many faults are tried in turn
    derandomize=True,
    database=None,
    # Conformance tests are inherited by one class per operator, which is what the check warns of.
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
settings.load_profile("asgat")

for name in ("COLUMNS", "LINES"):  # as readline may set them; a console that finds them when it is made keeps its size
    os.environ.pop(name, None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script; there are tests of Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the published files, or a skip."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ASGAT_DATA_DIR") or default)
    if not (folder / "planetoid").is_dir():
        pytest.skip(f"the published data files are not in {folder}; set ASGAT_DATA_DIR to the folder that has them")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _table_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables are stored in a folder of the session, and found there by processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASGAT_CACHE_DIR", str(tmp_path_factory.mktemp("tables")))
        yield


@pytest.fixture
def asgat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A function that runs the command line and returns exit code, output and errors.

    It runs in this process, or with ``process=True`` in a new one; lines are long enough not to be folded.
    """
    from asgat.cli import main

    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object, process: bool = False) -> tuple[int, str, str]:
        words = [str(argument) for argument in arguments]
        if process:
            command = [sys.executable, "-m", "asgat", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr
        monkeypatch.setattr(sys, "argv", ["asgat", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        return int(ended.value.code or 0), output, errors

    return call


@pytest.fixture
def free_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """A function that sets how many bytes of memory are free where a file is read."""
    return lambda size: monkeypatch.setattr("asgat.memory.available_memory", lambda: size)


@pytest.fixture
def raw() -> Callable[[bytes], RawFile]:
    return lambda content: RawFile(Path("some.file"), content)


@pytest.fixture
def npz() -> Callable[..., bytes]:
    """A function that packs arrays as numpy does."""

    def pack(**arrays: Any) -> bytes:
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        return stream.getvalue()

    return pack
