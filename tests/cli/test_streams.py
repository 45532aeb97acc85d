"""Standard streams that cannot encode a character or take a byte, as a process meets them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
PRINTING = [["datasets"], ["train", "--help"], ["--version"], ["datasets", "--json", "-"]]
MISSPELT = ["train", "karat"]
needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="there is no device that is always full")


def start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"):
    """Exit code, output and errors of a command."""
    env = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-m", "asgat", *words], stdout=stdout, stderr=stderr, env=env, check=False)
    return done.returncode, (done.stdout or b"").decode(encoding), (done.stderr or b"").decode(encoding)


@pytest.fixture
def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("words", [["datasets"], ["models", "gat"]], ids=" ".join)
def test_characters_that_cannot_be_encoded_are_replaced(words, encoding):
    code, output, errors = start(words, encoding=encoding)
    assert (code, errors) == (0, "")
    assert "?" in output


@needs_full
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_full_device_is_reported_in_a_sentence(words):
    with FULL.open("wb") as full:
        code, _, errors = start(words, stdout=full)
    assert code == 1
    assert errors.splitlines()[-1].startswith("error: The output cannot be written: No space left on device; ")
    assert errors.count("error") == 1
    assert "Traceback" not in errors


@pytest.mark.parametrize("words", [["train", "--help"], ["datasets", "--json", "-", "--quiet"]], ids=" ".join)
def test_a_closed_pipe_ends_a_command_silently(words, closed_pipe):
    code, _, errors = start(words, stdout=closed_pipe)
    assert (code, errors) == (1, "")


def test_a_stream_that_was_closed_at_the_start_is_reported():
    command = '"$0" -m asgat datasets --json - >&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: The output cannot be written: Bad file descriptor; ")


@needs_full
def test_errors_that_cannot_be_printed_keep_their_exit_code():
    with FULL.open("wb") as full:
        assert start(MISSPELT, stderr=full) == (2, "", "")
        assert start(["datasets", "--json", "-"], stderr=full)[0] == 1, "the table goes to the same stream"
        code, output, _ = start(["datasets", "--json", "-", "--quiet"], stderr=full)
    assert code == 0
    assert json.loads(output)
