"""The standard streams of a command: characters they cannot encode, and bytes they cannot take."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from asgat.cli.output import print_error


@contextmanager
def checked_streams() -> Iterator[None]:
    """Replaces characters that the output cannot encode, and ends with exit code 1 where a stream cannot be written.

    The reason is reported in a sentence, except for a closed pipe, whose reader wants no more.
    """
    if sys.stdout is None:  # closed by the shell, as with >&-
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")  # so that writing to it fails
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # standard error escapes them
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno is None or error.filename is not None:  # of a file
            raise
        if error.errno != errno.EPIPE:
            print_error(f"The output cannot be written: {error.strerror}; send it to another place.")
        sys.exit(1)
    finally:
        for stream in (sys.stdout, sys.stderr):
            _discard_unwritten(stream)


def _discard_unwritten(stream: TextIO | None) -> None:
    """Empties the buffer of a stream that cannot be written: at exit the interpreter would report it again."""
    if stream is not None:
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
