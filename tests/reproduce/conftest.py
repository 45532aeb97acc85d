"""A study small enough for tests: karate's 34 nodes, two splits, a few epochs; and the command in an empty folder."""

import json
import sys

import pytest
import torch

from asgat.nn.registry import MODELS
from reproduce import study as module
from reproduce.__main__ import run
from reproduce.experiment import run_experiment
from reproduce.geom_gcn import SPEC
from reproduce.study import Study


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder, without data files; models this small are faster on one thread."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


@pytest.fixture
def few_epochs(monkeypatch):
    """Even fewer epochs than in a quick run."""
    monkeypatch.setitem(module.QUICK_SETTINGS, "epochs", 3)


@pytest.fixture
def study(tmp_path, few_epochs):
    """A quick study of the karate club."""
    return Study(tmp_path / "out", quick=True, datasets=("karate",), models=("asgat-cheb", "gcn"))


@pytest.fixture
def run_quick(study):
    """A function that runs an experiment and returns its result, the text of its tables, and its files."""

    def call(name):
        tables, files = run_experiment(name, study)
        cells = [cell for table in tables for row in (table.headings, *table.rows) for cell in row]
        texts = [text for table in tables for text in (table.title, table.caption)]
        return json.loads(files[0].read_bytes()), " ".join(cells + texts), files

    return call


@pytest.fixture
def reproduce(monkeypatch, capsys):
    """A function that runs ``python -m reproduce`` in this process and returns exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(MODELS, "geom-gcn", SPEC)  # only until the test ends

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["reproduce", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        output, errors = capsys.readouterr()
        return int(ended.value.code or 0), output, errors

    return call


@pytest.fixture
def refused(reproduce, place):
    """A function that runs a command which must end in one sentence, exit code 2 and no file."""

    def call(*arguments):
        code, output, errors = reproduce(*arguments)
        assert code == 2, (output, errors)
        assert errors.startswith("error: ")
        assert errors.count("\n") == 1, errors
        assert list(place.rglob("*")) == []
        return errors.removeprefix("error: ").strip()

    return call
