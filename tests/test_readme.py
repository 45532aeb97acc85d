"""The README's example is run, its commands are parsed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in fences if name == language]


def commands():
    lines = [line for block in blocks("") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("asgat ")]


def test_the_python_example_runs_and_learns():
    (code,) = blocks("python")
    scope: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), scope)
    right = scope["probability"].argmax(axis=1) == scope["data"].y.numpy()
    assert right[scope["data"].test_mask[:, 0].numpy()].mean() > 0.6


def rows(text):
    """The cells of a page's tables by the first of a row; of rows with the same name, the first."""
    lines = (line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("|"))
    return {cells[0]: cells[1:] for cells in reversed(list(lines))}


def test_the_results_are_those_of_the_page_of_results():
    results = rows((ROOT / "docs" / "results.md").read_text(encoding="utf-8"))
    shown = {name: cells for name, cells in rows(README).items() if len(cells) == 3 and name[:3] not in ("---", "dat")}
    assert len(shown) == 6
    for name, (ours, paper, published) in shown.items():
        told = " | ".join(results[name.removesuffix(" (ROC-AUC)")])
        for figure in (ours, paper, published):
            assert figure.strip("*") in told, f"{name}: {figure}"


def test_there_are_commands_to_check():
    assert len(commands()) == 4


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_commands_parse(command):
    """Every command parses, options and names included; nothing is trained."""
    from typer.main import get_command

    from asgat.cli.app import app
    from asgat.data import dataset_names
    from asgat.nn.registry import MODELS

    root = get_command(app)
    name, arguments = command[1], command[2:]
    parsed = root.commands[name].make_context(name, list(arguments)).params  # type: ignore[attr-defined]
    assert parsed.get("dataset", "texas") in dataset_names()
    for model in (parsed.get("models") or parsed.get("model") or "gcn").split(","):
        assert model in MODELS


def test_linked_files_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
