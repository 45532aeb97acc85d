"""The guides' snippets are run as they are, their commands with fewer epochs."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asgat.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ["getting-started", "own-data", "choosing", "extending"]


def blocks(guide, language):
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [body for name, body in fences if name == language]


def commands(guide):
    lines = [line for block in blocks(guide, "") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("asgat ")]


def run(code):
    scope: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, "guide", "exec"), scope)
    return scope


def test_own_data_in_four_commands(asgat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, python, validation = blocks("own-data", "python")
    run(make)
    four = commands("own-data")
    assert [command[1] for command in four] == ["fit", "predict", "explain", "report"]
    for command in four:
        quick = ["--set", "epochs=10", "--set", "hidden=8", "--set", "heads=2"] if command[1] == "fit" else []
        code, _, errors = asgat(*command[1:], *quick)
        assert code == 0, errors
    assert len(Path("predictions.csv").read_text(encoding="utf-8").splitlines()) == 301
    scope = run(python.replace("epochs=50", "epochs=5"))
    np.testing.assert_array_equal(scope["probability"], scope["model"].predict_proba())
    first = "from asgat.estimator.classifier import ASGATClassifier\n"
    assert run(first + validation.replace("epochs=20", "epochs=10"))["scores"].shape == (3,)


def test_snippets_of_extending():
    scopes = [run(code) for code in blocks("extending", "python")]
    assert scopes[0]["logits"].shape == (5, 3)
    assert scopes[1]["dataset"].num_nodes == 20


@pytest.mark.parametrize("command", [c for guide in GUIDES for c in commands(guide)], ids=" ".join)
def test_commands_parse(command):
    from typer.main import get_command

    root = get_command(app)
    root.commands[command[1]].make_context(command[1], list(command[2:]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("guide", GUIDES)
def test_files_named_by_a_guide_exist(guide):
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target
    for name in re.findall(r"`((?:examples|src/asgat|data|nn|recipes|experiments|tests)/[\w./-]+\.(?:py|txt))`", text):
        assert (ROOT / name).exists() or (ROOT / "src" / "asgat" / name).exists(), name


def test_the_guide_states_the_thresholds_of_the_advice():
    from asgat.estimator import health

    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert f"β ≥ {health.HOMOPHILIC}" in text
    assert f"mean degree ≥ {health.DENSE:.0f}" in text
    assert f"beyond {health.LARGE:,} stored entries" in text
