"""Every command is tried in an empty folder, without data files."""

import re

import pytest
import torch
from tests.distributed.ranks import free_port

from asgat.cli.output import begin_output
from asgat.distributed.lost_rank import LostRankExit


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The empty folder."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # models this small are faster so
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


@pytest.fixture
def one_rank(monkeypatch):
    """The variables that a launcher sets for the only rank of a job."""
    monkeypatch.setattr(LostRankExit, "on_terminate", lambda self: None)
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))
    yield
    begin_output()


@pytest.fixture
def refused(asgat, place):
    """A function that runs a command which must end in one sentence, exit code 2 and no file."""

    def call(*arguments):
        before = sorted(place.rglob("*"))
        code, output, errors = asgat(*arguments)
        assert code == 2, (output, errors)
        assert errors.startswith("error: ")
        assert errors.rstrip().endswith((".", "?", "…"))
        assert errors.count("\n") == 1, errors
        assert "±" not in output
        assert sorted(place.rglob("*")) == before
        return errors.removeprefix("error: ").strip()

    return call


@pytest.fixture
def cells():
    """A function that splits a printed table into the cells of every line, whatever frame it has."""

    def call(output):
        return [re.split(r"\s{2,}|\s*[│┃|]\s*", line.strip(" │┃|")) for line in output.splitlines()]

    return call
