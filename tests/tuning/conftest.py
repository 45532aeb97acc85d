"""A PostgreSQL server for the tests, if it is installed; without Optuna, only tests that do not need it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("optuna") is None:
    collect_ignore = ["test_storage.py", "test_tuner.py", "test_worker.py"]


def _programs() -> Path | None:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found := shutil.which("initdb"):
        places.append(Path(found).resolve().parent)
    whole = [p for p in places if all((p / name).exists() for name in ("initdb", "postgres", "pg_isready"))]
    return whole[-1] if whole else None


@pytest.fixture(scope="session")
def postgres():
    """The URL of an empty server on a free loopback port; it refuses to run as root, so another user runs it."""
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        names = {entry.pw_name: entry for entry in pwd.getpwall()}
        entry = names.get("postgres") or names.get("nobody")
        if entry is None:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
        who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="asgat-postgres-"))
    if who:
        os.chown(folder, who["user"], who["group"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    made: list[Any] = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        "tuner",
        "--auth=trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    ]
    done = subprocess.run(made, capture_output=True, text=True, cwd=folder, check=False, **who)
    if done.returncode:
        pytest.skip(f"initdb failed: {done.stderr.strip()[-200:]}")
    command: list[Any] = [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **who)
    try:
        ready: list[Any] = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-q"]
        for _ in range(100):
            if subprocess.run(ready, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            pytest.skip("PostgreSQL did not start within ten seconds")
        yield f"postgresql://tuner@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
