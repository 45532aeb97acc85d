"""Every example runs and learns something."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_own_csv(tmp_path, capsys):
    assert load("own_csv").main(tmp_path, epochs=30) > 0.6
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 201
    assert "predictions are in" in capsys.readouterr().out


def test_pyg_training_loop():
    assert load("pyg_training_loop").main(epochs=20) > 0.55


def test_transfer():
    score, guess = load("transfer").main(nodes=450, epochs=60)
    assert score > guess + 0.1


def test_custom_filter():
    assert load("custom_filter").main(epochs=20) > 0.55


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_has_a_test_and_says_how_to_run_it(path):
    assert f"test_{path.stem}" in globals()
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
