"""The code of the guides runs: snippets unchanged, commands with fewer epochs."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.leaderboard.conftest import make_small_field

from asgat.cli.app import app as asgat_app
from asgat.config import ASGATConfig
from reproduce.app import app as reproduce_app

ROOT = Path(__file__).resolve().parents[1]
GUIDES = [
    "getting-started",
    "own-data",
    "choosing",
    "extending",
    "tuning",
    "use-on-my-graph",
    "use-in-pyg",
    "index",
    "leaderboard",
]
GUIDES += [
    "directed-edges",
    "baselines",
    "reproduce",
    "scale",
    "report",
    "explain",
    "results",
    "connections",
    "heat",
    "authors-program",
]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MOST_WORDS = 1100  # of a page
MOST_LINKS = 4  # of a paragraph
GUIDE_PAGES = [page for page in PAGES if page.parent.name == "docs"]
REMOVED = {"recipes/NAME.toml"}  # a placeholder


def blocks(guide, language):
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [body for name, body in fences if name == language]


def commands(guide, program="asgat"):
    lines = [line for block in blocks(guide, "") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"{program} ")]


def run(code):
    scope: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, "guide", "exec"), scope)
    return scope


def quick(command):
    """The arguments of a command of a guide with options that make it short."""
    words = command[1:]
    for option in ("--preset", "--trials"):
        if option in words:
            place = words.index(option)
            words = words[:place] + words[place + 2 :]
    if words[0] == "fit" and not {"--model", "--recipe"} & set(words):
        return [*words, "--preset", "quick"]
    if words[0] == "tune":
        return [*words, "--set", "epochs=10", "--trials", "2"]
    if words[0] == "fit" and "asgat-plus" in words:
        return [*words, "--set", "epochs=10", "--set", "hidden=8", "--set", "heads=2"]
    return [*words, "--set", "epochs=10"] if words[0] in ("fit", "compare") else words


def test_pages_on_own_data(asgat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(*blocks("use-on-my-graph", "python"))
    run(*blocks("directed-edges", "python"))
    make_small_field(monkeypatch)
    called = []
    for page in ("own-data", "leaderboard", "directed-edges"):
        for command in commands(page):
            if command[1] == "tune":
                pytest.importorskip("optuna")
            code, _, errors = asgat(*quick(command))
            assert code == 0, errors
            called.append(command[1])
    assert " ".join(called) == "fit predict report fit explain fit compare tune fit fit explain"
    assert len(Path("predictions.csv").read_text(encoding="utf-8").splitlines()) == 301
    files, validation = blocks("classifier", "python")
    scope = run(files.replace("epochs=50", "epochs=5"))
    np.testing.assert_array_equal(scope["probability"], scope["model"].predict_proba())
    assert 0.0 <= scope["accuracy"] <= 1.0
    scope = run(validation.replace("epochs=20", "epochs=10"))
    assert scope["scores"].shape == (3,)
    assert scope["search"].best_params_["k"] in (3, 5)


def test_a_search_on_a_network_of_students(asgat, real_data, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    students = real_data / "strangers" / "reed98"
    if not students.is_dir():
        pytest.skip(f"there is no {students}")
    monkeypatch.chdir(tmp_path)
    Path("reed98").symlink_to(students)
    own = [command for command in commands("tuning") if "--edges" in command]
    assert [command[1] for command in own] == ["compare", "tune", "fit"]
    for command in own:
        code, _, errors = asgat(*quick(command))
        assert code == 0, errors
    assert (tmp_path / "runs" / "reed98-linkx-seed0" / "graph.npz").is_file()


def test_the_tutorial_on_a_graph_in_files(asgat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (make,) = blocks("use-on-my-graph", "python")
    run(make)
    make_small_field(monkeypatch)
    printed = []
    for command in commands("use-on-my-graph"):
        code, out, errors = asgat(*quick(command))
        assert code == 0, errors
        printed.append(out)
    assert [command[1] for command in commands("use-on-my-graph")] == ["fit", "predict", "fit", "explain", "report"]
    assert len(Path("predictions.csv").read_text(encoding="utf-8").splitlines()) == 301
    assert "node p122: seller" in printed[3]
    assert Path("runs/market-attention/report.html").stat().st_size > 100_000


def test_the_tutorial_on_the_layer(capsys):
    code = "\n".join(blocks("use-in-pyg", "python"))
    scope = run(code.replace("range(60)", "range(10)"))
    assert "validation accuracy" in capsys.readouterr().out
    assert scope["logits"].shape == (800, 2)
    assert scope["weights"].shape == (6,)
    assert scope["mask"].shape == (34, 34)


def test_snippets_of_connections():
    (code,) = blocks("connections", "python")
    assert run(code)["out"].shape == (34, 4)


def test_snippets_of_extending():
    scopes = [run(code) for code in blocks("extending", "python")]
    assert scopes[0]["logits"].shape == (5, 3)
    assert scopes[1]["dataset"].num_nodes == 20


COMMANDS = [
    (app, name, words)
    for app, program in ((asgat_app, "asgat"), (reproduce_app, "python -m reproduce"))
    for guide in GUIDES
    for name, *words in (command[len(program.split()) :] for command in commands(guide, program))
]


@pytest.mark.parametrize(("app", "name", "words"), COMMANDS, ids=lambda value: str(value) if type(value) is str else "")
def test_commands_parse(app, name, words):
    from typer.main import get_command

    command: Any = get_command(app).commands[name]  # type: ignore[attr-defined]
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(name, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        assert (page.parent / target).exists(), target
    package = ROOT / "src" / "asgat"
    for name in re.findall(r"`([\w-]+/[\w./-]+\.(?:py|toml|txt))`", text):
        assert name in REMOVED or (ROOT / name).exists() or (package / name).exists(), name
    for name in re.findall(r"`(test_\w+)`", text):
        assert any(f"def {name}(" in test.read_text(encoding="utf-8") for test in TESTS), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_headings_that_a_page_links_to_exist(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        linked = page.parent / target if target else page
        headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings], target


@pytest.mark.parametrize("page", GUIDE_PAGES, ids=lambda page: page.name)
def test_a_page_can_be_read_in_one_sitting(page):
    """Code does not count, and pages of the reference may be longer."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    words = [word for word in text.split() if re.search(r"\w", word)]
    assert len(words) < MOST_WORDS, len(words)
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith(("|", "- ", "* ")):
            assert len(re.findall(r"\]\(", paragraph)) <= MOST_LINKS, f"a paragraph of links: {paragraph[:60]}"


def test_the_guide_states_the_thresholds_of_the_advice():
    from asgat.estimator import health

    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert f"β ≥ {health.HOMOPHILIC}" in text
    assert f"mean degree ≥ {health.DENSE:.0f}" in text
    assert f"beyond {health.LARGE:,} stored entries" in text


def test_departures_from_the_paper_are_named():
    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert "every layer has a learned bias" in text
    assert f"The default setting is `elu={ASGATConfig().elu}`" in text
