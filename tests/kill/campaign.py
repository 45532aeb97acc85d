"""Kills commands with SIGKILL at random moments, starts them again, and compares with what was left alone.

    python -m tests.kill.campaign --kills 50 --seed 0

Every command is a separate process. After every kill each file it left is read; in the end every number must be that
of the undisturbed command. Savings are made after every epoch here, not every half minute, so that most kills hit one.
After the kills of a first round the data have changed, if they are the user's: the command must refuse to go on, and
name --fresh. After those of a second the disk is full at the last write: nothing may be lost.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from tests.forkserver import CONTEXT

LIMIT = 120.0  # seconds a command may take
SMALL = "--set hidden=4 --set epochs=25 --set patience=99 --set max_restarts=0"
TIMES = {"seconds", "ms_per_epoch", "peak_memory_mb", "epoch_s", "mb"}


@dataclass(frozen=True)
class Problem:
    """A command, run in a separate folder, and what in that folder must be the same in the end.

    Attributes:
        command: what follows `asgat`.
        numbers: what is compared.
        setup: makes the files it reads.
        done: whether it was done before it was killed, and would refuse to do it again.
        last: the file it writes last.
        change: changes the files it reads, and changes them back.
    """

    command: str
    numbers: Callable[[Path], Any]
    setup: Callable[[Path], None] = lambda folder: None
    done: Callable[[Path], bool] = lambda folder: False
    last: str = "result.json"
    change: Callable[[Path], None] | None = None


@dataclass
class Tally:
    """What a campaign came to."""

    kills: int = 0
    rounds: int = 0
    resumed: int = 0  # kills after which there were files
    early: int = 0  # kills after it had begun and before an epoch was saved: while a table was built, mostly
    full: int = 0  # times the disk was full at the last write
    changed: int = 0  # times the data had changed since a kill
    faults: list[str] = field(default_factory=list)


def work(command: str, folder: str, largest: int | None = None, full_at: str = "") -> None:
    """The body of a process: the command line, as a user would start it in that folder.

    Args:
        command: what follows `asgat`.
        folder: where.
        largest: bytes after which no file can be written any more, as on a full disk.
        full_at: the name of a file; from the first time it is written the disk is full.
    """
    import torch

    from asgat.cli import main
    from asgat.training import checkpoint

    os.chdir(folder)
    torch.set_num_threads(1)  # several threads wait for each other where a machine is busy
    checkpoint.SECONDS = 0.0
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if full_at:
        fill_disk(full_at)
    sys.argv = ["asgat", *command.split()]
    main()


def fill_disk(name: str) -> None:
    """From the first time the file of that name is synced to the disk, every sync fails as on a full one."""
    full: list[str] = []
    original = os.fsync

    def fsync(descriptor: int) -> None:
        if full or Path(f"/proc/self/fd/{descriptor}").readlink().name.removeprefix(".").startswith(name):
            full.append(name)
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


def start(command: str, folder: Path, largest: int | None = None, full_at: str = "") -> Any:
    process = CONTEXT.Process(target=work, args=(command, str(folder), largest, full_at))
    process.start()
    return process


def finish(process: Any) -> None:
    process.join(LIMIT)
    if process.exitcode is None:
        process.kill()
        process.join()


def wait_for(path: Path, process: Any) -> None:
    """Waits until a command has written a file, or has ended."""
    deadline = time.monotonic() + LIMIT
    while not path.exists() and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.002)


# -- what is compared -------------------------------------------------------------------------------------------------


def timeless(value: Any) -> Any:
    """A result without what a clock or the memory of a process decides."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def numbers_of_run(folder: Path) -> Any:
    """Result, every epoch, and weights of a run directory."""
    weights = {}
    with safe_open(str(folder / "model.safetensors"), framework="np") as handle:
        for name in sorted(handle.keys()):
            weights[name] = handle.get_tensor(name).tobytes()
    result = timeless(json.loads((folder / "result.json").read_text()))
    return result, (folder / "metrics.jsonl").read_text(), weights


def numbers_of_search(folder: Path) -> Any:
    trials = [timeless(json.loads(line)) for line in (folder / "search/trials.jsonl").read_text().splitlines()]
    return trials, (folder / "search/recipe.toml").read_text()


def bytes_of_folder(folder: Path) -> Any:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


def write_tables(folder: Path) -> None:
    """A graph of one's own in three files, and as arrays."""
    draw = np.random.default_rng(0)
    label = draw.integers(0, 2, 60)
    edges = draw.integers(0, 60, (240, 2))
    x = (label[:, None] + draw.normal(size=(60, 3))).astype(np.float32)
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    rows = "".join(f"{i},{x[i, 0]:.4f},{x[i, 1]:.4f},{'ab'[label[i]]}\n" for i in range(60))
    (folder / "nodes.csv").write_text("id,u,v,kind\n" + rows)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", label)


def swap_classes(folder: Path) -> None:
    """Exchanges the two classes in the file of nodes."""
    rows = (folder / "nodes.csv").read_text().split("\n")
    swapped = [row[:-1] + {"a": "b", "b": "a"}[row[-1]] if row[-1:] in ("a", "b") else row for row in rows]
    (folder / "nodes.csv").write_text("\n".join(swapped))


PROBLEMS = {
    "train": Problem(
        "train karate --model asgat-plus --splits 0-2 --out run --set heads=2 --set k=4 --set dropout=0.5 " + SMALL,
        lambda folder: numbers_of_run(folder / "run"),
    ),
    "table": Problem(
        "train csbm --model asgat-cheb --splits 0 --out run --set form=table --set order=30 --set candidates=64 "
        "--set heads=1 --set k=4 --set epochs=4",
        lambda folder: numbers_of_run(folder / "run"),
    ),
    "tune": Problem(
        "tune karate --model gcn --trials 12 --splits 0 --out search --set epochs=8 --set max_restarts=0",
        numbers_of_search,
        last="recipe.toml",
    ),
    "fit": Problem(
        "fit --edges edges.csv --nodes nodes.csv --label kind --model asgat-plus --out run --set heads=2 " + SMALL,
        lambda folder: numbers_of_run(folder / "run"),
        write_tables,
        change=swap_classes,
    ),
    "convert": Problem(
        "convert edges.csv graph --features x.npy --labels y.npy",
        lambda folder: bytes_of_folder(folder / "graph"),
        write_tables,
        lambda folder: (folder / "graph").exists(),
        last="",
    ),
}


# -- what must be readable --------------------------------------------------------------------------------------------


def unreadable(folder: Path) -> list[str]:
    """The files of a folder that cannot be read as their names suggest, with the reason."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # what was being written, and locks
        try:
            read(path)
        except Exception as error:
            found.append(f"{path.relative_to(folder)}: {error!r}")
    return found


def read(path: Path) -> None:
    if path.suffix == ".json":
        json.loads(path.read_text())
    elif path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            json.loads(line)
    elif path.suffix == ".toml":
        tomllib.loads(path.read_text())
    elif path.suffix == ".safetensors":
        with safe_open(str(path), framework="np") as handle:
            for name in handle.keys():  # noqa: SIM118
                handle.get_tensor(name)
    elif path.suffix == ".npy":
        np.load(path)
    elif path.suffix == ".png" and not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
        raise ValueError("half a picture")
    elif path.suffix == ".db":
        with closing(sqlite3.connect(path)) as database:
            if database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise ValueError("a damaged database")


# -- the campaign -----------------------------------------------------------------------------------------------------


def undisturbed(problem: Problem, folder: Path, warm: bool = True) -> tuple[Any, float]:
    """Its numbers, and the seconds it takes; if it is to be ``warm``, those of a second time."""
    for _ in range(2 if warm else 1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        problem.setup(folder)
        began = time.monotonic()
        process = start(problem.command, folder)
        finish(process)
        seconds = time.monotonic() - began
        if process.exitcode != 0:
            raise RuntimeError(f"{problem.command} ended with {process.exitcode}: {(folder / 'log.txt').read_text()}")
    return problem.numbers(folder), seconds


def attack(name: str, kills: int, seed: int, place: Path, most: int = 3, warm: bool = True) -> Tally:
    """Kills a command some times, in rounds of at most ``most`` kills after which it is left to end."""
    problem, tally, rng = PROBLEMS[name], Tally(), random.Random(f"{seed} {name}")
    expected, seconds = undisturbed(problem, place / f"{name}-alone", warm)
    while tally.kills < kills:
        folder = place / f"{name}-{tally.rounds}"
        folder.mkdir()
        problem.setup(folder)
        before = {path.name for path in folder.iterdir()}
        tally.rounds += 1
        for again in range(min(most, kills - tally.kills)):
            process, began = start(problem.command, folder), time.monotonic()
            process.join(rng.uniform(0.0, seconds))
            if not process.is_alive():  # it was quicker; from the beginning it will be so the next time
                seconds = seconds if again else min(seconds, time.monotonic() - began)
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            ended = process.exitcode
            if ended == -signal.SIGKILL:
                tally.kills += 1
                left = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - before
                tally.resumed += bool(left - {"log.txt"})
                saved = {path.name for path in folder.rglob("*")} & {"unfinished.safetensors", "result.json"}
                tally.early += not saved and any(folder.rglob("config.toml"))
            tally.faults += [f"{name}, round {tally.rounds}: {fault}" for fault in unreadable(folder)]
            if problem.done(folder):
                break
        found = []
        if tally.rounds % 3 == 2 and problem.last:
            tally.full += 1
            found += fill_up(problem, folder)
        elif tally.rounds % 3 == 1 and problem.change and any(folder.rglob("config.toml")):
            tally.changed += 1
            found += change_data(problem, folder)
        if not problem.done(folder):
            process = start(problem.command, folder)
            finish(process)
            if process.exitcode != 0:
                tally.faults.append(f"{name}, round {tally.rounds}: {(folder / 'log.txt').read_text()[-2000:]}")
                continue
        if problem.numbers(folder) != expected:
            found.append(f"other numbers in {folder}")
        if tally.rounds % 3 == 2 and problem.last:  # what is finished survives a second time on a full disk
            finish(start(problem.command, folder, full_at=problem.last))
            if problem.numbers(folder) != expected:
                found.append(f"a full disk took what was finished in {folder}")
        tally.faults += [f"{name}, round {tally.rounds}: {fault}" for fault in found]
    return tally


def ended(process: Any, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it printed since."""
    before = (folder / "log.txt").stat().st_size if (folder / "log.txt").exists() else 0
    finish(process)
    return process.exitcode, " ".join((folder / "log.txt").read_bytes()[before:].decode().split())


def fill_up(problem: Problem, folder: Path) -> list[str]:
    """Goes on with a killed command until the disk is full at its last write; what was wrong."""
    code, said = ended(start(problem.command, folder, full_at=problem.last), folder)
    found = unreadable(folder)
    if code == 0:  # its last write was made before it was killed
        return found
    if code != 2 or "No space left on device. Free some space" not in said or "Traceback" in said:
        found.append(f"a full disk ended it with {code}: {said[-2000:]}")
    kept = {path.name for path in folder.rglob("*")} & {"unfinished.safetensors", "result.json", "study.db"}
    return found if kept else [*found, "a full disk left nothing to go on from"]


def change_data(problem: Problem, folder: Path) -> list[str]:
    """Goes on with a killed command on other data, then puts the data back; what was wrong."""
    assert problem.change is not None
    held = {path: path.read_bytes() for path in folder.glob("run/[!.]*")}
    problem.change(folder)
    code, said = ended(start(problem.command, folder), folder)
    problem.change(folder)
    found = [] if held == {path: path.read_bytes() for path in folder.glob("run/[!.]*")} else ["the refusal cost files"]
    if code == 2 and "have changed since" in said and "--fresh" in said and "Traceback" not in said:
        return found
    return [*found, f"on other data it ended with {code}: {said[-2000:]}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="in all, divided among the problems")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    options = parser.parse_args()
    names = options.problems.split(",")
    faults, counts, began = [], [], time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="kills-"))
    for i, name in enumerate(names):
        share = options.kills // len(names) + (i < options.kills % len(names))
        tally = attack(name, share, options.seed, place)
        faults += tally.faults
        counts.append(f"{name} {tally.kills} in {tally.rounds} rounds")
        print(
            f"{name}: {tally.kills} kills ({tally.resumed} with files left, {tally.early} before an epoch was saved), "
            f"{tally.full} full disks, {tally.changed} times other data, {len(tally.faults)} faults",
            flush=True,
        )
    for fault in faults:
        print(fault)
    same = "every file readable, every number the same, every change of data said"
    outcome = f"{len(faults)} faults, files in {place}" if faults else same
    total = sum(int(count.split()[1]) for count in counts)
    print(f"{total} kills ({', '.join(counts)}), seed {options.seed}, {time.monotonic() - began:.0f} s: {outcome}.")
    if not faults:
        shutil.rmtree(place)
    return bool(faults)


if __name__ == "__main__":
    from tests.kill import campaign  # under its own name, by which processes find it

    vars(sys.modules["__main__"]).update(__spec__=None, __file__=None)  # so they need not run it once more
    sys.exit(campaign.main())
