"""The notebooks of the documentation run from top to bottom, and are stored without outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.fixture
def run(monkeypatch):
    """A function that runs the code of a notebook in one scope and returns it."""
    pytest.importorskip("IPython", reason="needs IPython, which the extra docs installs")
    monkeypatch.setenv("MPLBACKEND", "agg")

    def run_cells(name):
        scope: dict[str, Any] = {"__name__": "notebook"}
        for number, cell in enumerate(cells(FOLDER / f"{name}.ipynb")):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), scope)
        scope["plt"].close("all")
        return scope

    return run_cells


def test_own_csv(run):
    scope = run("own-csv")
    assert scope["scores"]["features and graph"] > scope["scores"]["features alone"]
    assert len(scope["unknown"]) == 80


def test_pyg_training_loop(run):
    scores = run("pyg-training-loop")["scores"]
    assert scores["ASGAT"] > scores["GCN"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_has_a_test_and_no_outputs(path):
    assert f"test_{path.stem.replace('-', '_')}" in globals()
    for cell in cells(path):
        assert not cell.get("outputs"), "outputs"
        assert cell.get("execution_count") is None
        assert cell["metadata"] == {}
