"""What must hold for a reader with any input: a result or an AsgatError, and no side effects."""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS

MAX_SECONDS = 10.0  # of :func:`seconds`
MAX_MEMORY_MB = 1024  # more than a process had before
FREE_MB = 384  # what readers are told is free: what they take beyond it, they have not counted
# What code that a file brought along would do. Opening is looked at apart: reading inside the folder is the job.
FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "socket.",
    "pickle.find_class",
    "ftplib.",
    "urllib.",
    "ctypes.dlopen",
    "shutil.",
    "os.remove",
    "os.chmod",
    "os.link",
    "os.symlink",
    "webbrowser.",
)


class Violation(AssertionError):
    """A reader did what it must not do."""


class Watch:
    """Notes what is done while it is on; an audit hook cannot be taken off again."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event.startswith(FORBIDDEN):
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event == "open" and isinstance(arguments[0], (str, bytes)):
            path, flags = os.fsdecode(arguments[0]), arguments[2]
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and not path.startswith(str(self.folder)) and "__pycache__" not in path:
                self.seen.append(f"open {path} for writing")


_watches: list[Watch] = []


def watch() -> Watch:
    if not _watches:
        _watches.append(Watch())
    return _watches[0]


def seconds() -> float:
    """The time, less what this thread has spent ready to run while other processes had the cores (Linux)."""
    try:
        return time.monotonic() - int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return time.monotonic()


def memory_mb() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_files(name: str, folder: Path) -> dict[str, bytes]:
    files = TARGETS[name].make()
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return files


def check(name: str, folder: Path) -> bool:
    """Lets a reader read a folder; whether it took it.

    Raises:
        Violation: it failed with another error than ours, took too long or too much, or did something else.
    """
    from asgat.errors import AsgatError

    guard, before, start = watch(), memory_mb(), seconds()
    guard.seen, guard.folder = [], folder
    faulthandler.dump_traceback_later(300, exit=True)  # it does not come back
    try:
        with warnings.catch_warnings(), patch("asgat.memory.available_memory", lambda: FREE_MB << 20):
            warnings.simplefilter("error")
            TARGETS[name].read(folder)
        taken = True
    except AsgatError as error:
        taken = False
        if "\n" in str(error) or len(str(error)) > 1000:
            raise Violation(f"not one sentence: {str(error)[:400]!r}") from error
    except Exception as error:
        raise Violation(f"{type(error).__name__}: {error!s:.400}") from error
    finally:
        guard.folder = None
        faulthandler.cancel_dump_traceback_later()
    if guard.seen:
        raise Violation(f"it did {guard.seen[0]}")
    taken_s = (seconds() - start) / (4.0 if sys.gettrace() else 1.0)  # coverage counts every line
    if taken_s > MAX_SECONDS:
        raise Violation(f"it took {taken_s:.0f} s")
    if memory_mb() - before > MAX_MEMORY_MB:
        raise Violation(f"it took {memory_mb() - before:.0f} MB")
    return taken


def check_mutant(name: str, number: int, folder: Path, files: dict[str, bytes]) -> bool:
    """The reader on one spoiled file of its folder, which is whole again afterwards."""
    rng = random.Random(f"{name} {number}")
    file = rng.choice(sorted(files))
    if rng.random() < 0.01:
        replace_by_no_file(folder / file, rng)
    else:
        (folder / file).write_bytes(mutate(files[file], rng))
    try:
        return check(name, folder)
    except Violation as error:
        raise Violation(f"{name}, mutant {number}, {file}: {error}") from error
    finally:
        for extra in {path.name for path in folder.iterdir()} - {Path(known).parts[0] for known in files}:
            _remove(folder / extra)
        if not (folder / file).is_file() or (folder / file).is_symlink():
            _remove(folder / file)
        for known, sound in files.items():
            if known == file or not (folder / known).exists() or (folder / known).stat().st_size != len(sound):
                (folder / known).write_bytes(sound)


def replace_by_no_file(path: Path, rng: random.Random) -> None:
    """A pipe that nobody writes to, a device without an end, a folder, or nothing in place of a file."""
    path.unlink()
    match rng.randrange(5):
        case 0:
            os.mkfifo(path)
        case 1:
            path.symlink_to(rng.choice(("/dev/zero", "/dev/full", "/dev/null")))
        case 2:
            path.symlink_to(path)
        case 3:
            path.mkdir()
        case _:
            pass


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
