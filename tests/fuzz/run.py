"""Spoils files by the thousand and lets the readers read them: ``python -m tests.fuzz.run --count 24000``.

Every reader gets the same share. Mutant n of a reader is always the same file, so a failure is repeated by
``--only READER --start n --count 1``. A reader that takes the process down (a crash, a hang) is reported as well.
"""

from __future__ import annotations

import argparse
import mmap
import os
import struct
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.check import Violation, check, check_mutant, write_files
from tests.fuzz.targets import TARGETS


def fuzz(name: str, start: int, count: int, shared: mmap.mmap) -> None:
    """In a separate process: reports its progress through shared memory."""
    taken = bad = 0
    with TemporaryDirectory() as place:
        folder = Path(place)
        files = write_files(name, folder)
        TARGETS[name].read(folder)  # what is loaded and compiled once is none of the files' doing
        assert check(name, folder), "the sound files must be read"
        for number in range(start, start + count):
            shared[:24] = struct.pack("<3q", number, taken, bad)
            try:
                taken += check_mutant(name, number, folder, files)
            except Violation as error:
                bad += 1
                print(error, flush=True)
    shared[:24] = struct.pack("<3q", start + count, taken, bad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=24_000, help="mutants in all")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", choices=TARGETS, help="one reader")
    options = parser.parse_args()
    names = [options.only] if options.only else list(TARGETS)
    share, bad_in_all, tried = -(-options.count // len(names)), 0, 0
    for name in names:
        shared = mmap.mmap(-1, 24)
        child = os.fork()
        if not child:
            try:
                fuzz(name, options.start, share, shared)
                os._exit(0)
            except BaseException as error:
                print(f"{name}: {error!r}", flush=True)
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        number, taken, bad = struct.unpack("<3q", shared[:24])
        if status:
            bad += 1
            print(f"{name}, mutant {number}: the process ended with {status}", flush=True)
        done = number - options.start
        print(f"{name}: {done} mutants, {done - taken - bad} refused, {taken} read, {bad} bad", flush=True)
        bad_in_all, tried = bad_in_all + bad, tried + done
    print(f"{tried} mutants of {len(names)} readers, {bad_in_all} bad")
    sys.exit(bool(bad_in_all))


if __name__ == "__main__":
    main()
