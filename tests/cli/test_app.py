import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from asgat import __version__
from asgat.cli import main
from asgat.cli.app import app
from asgat.errors import AsgatError

PANELS = {
    "Your graph": ["fit", "predict", "explain", "report", "runs", "convert"],
    "Benchmarks": ["datasets", "models", "train", "compare", "tune"],
}
COMMANDS = [name for names in PANELS.values() for name in names]
TRAIN = ["train", "karate", "--model", "mlp", "--splits", "0", "--set", "epochs=2", "--device", "cpu"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--no-such-option"],
        ["train", "karate", "--seed", "one"],
        ["train", "karate", "--seed", "-1"],
        ["train", "karate", "--seed", str(2**64)],
        ["train", "karate", "gcn"],
        ["trian"],
        ["models", "--set", "lr=1"],
    ],
)
def test_wrong_usage_exits_with_2(asgat, place, arguments):
    code, output, errors = asgat(*arguments)
    assert (code, output) == (2, "")
    assert "Usage" in errors
    assert "Traceback" not in errors
    assert list(place.iterdir()) == []


def test_a_bug_is_not_reported_as_bad_input(monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr("asgat.cli.models.describe_datasets", broken)
    monkeypatch.setattr(sys, "argv", ["asgat", "datasets"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_errors_reach_callers_of_the_app():
    result = CliRunner().invoke(app, ["train", "karat"])
    assert isinstance(result.exception, AsgatError)


def test_exit_codes_of_the_process(asgat, place):
    code, output, errors = asgat("train", "karat", process=True)
    assert (code, output) == (2, "")
    assert errors.startswith("error: There is no data set 'karat'. Did you mean 'karate'?")
    assert "Traceback" not in errors
    assert list(place.iterdir()) == []


def test_help_and_version(asgat):
    assert asgat("--version") == (0, f"{__version__}\n", "")
    code, output, _ = asgat("--help")
    assert code == 0
    assert all(command in output for command in ("datasets", "models", "train", "compare"))
    code, output, _ = asgat("train", "--help")
    assert code == 0
    assert all(option in output for option in ("--splits", "--seed", "--set", "--device", "--out", "--json"))


def test_commands_are_grouped(asgat):
    _, output, _ = asgat("--help")
    panels = re.split(r"╭─ ([\w ]+) ─+╮\n", output)
    shown = {
        title: re.findall(r"^│ (\w+) ", text, re.MULTILINE)
        for title, text in zip(panels[1::2], panels[2::2], strict=True)
    }
    assert {title: shown[title] for title in PANELS} == PANELS
    assert list(shown) == ["Options", *PANELS]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_cuts_nothing_at_width_80(command, asgat, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, output, _ = asgat(*command, "--help")
    assert code == 0
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("words", [["--quiet", *TRAIN], [*TRAIN, "-q"]], ids=["before", "after"])
def test_quiet_prints_nothing_but_errors(asgat, place, words):
    assert asgat(*words) == (0, "", "")
    assert len(list(place.rglob("result.json"))) == 1
    code, output, errors = asgat("train", "karat", "--quiet")
    assert (code, output) == (2, "")
    assert errors.startswith("error: There is no data set")
    assert asgat("train", "karat", "--quiet")[1:] != ("", ""), "and the next command is as loud as ever"


def test_verbose_prints_device_settings_and_time(asgat):
    code, plain, errors = asgat(*TRAIN)
    assert (code, errors) == (0, "")
    code, output, errors = asgat(*TRAIN, "--verbose")
    assert (code, output) == (0, plain)
    device, settings, seconds = errors.splitlines()
    assert device.startswith("device cpu, PyTorch ")
    assert "epochs 2, patience 100" in settings
    assert re.fullmatch(r"\d+\.\d s", seconds)


def test_verbose_prints_the_threads_of_a_training(asgat):
    *_, errors = asgat(*TRAIN, "--verbose")
    assert "Threads on the CPU: 1 thread, by the work of an epoch." in errors.splitlines()
    *_, errors = asgat(*TRAIN, "--verbose", "--fresh", "--threads", 2)
    assert "Threads on the CPU: 2 threads, as given." in errors.splitlines()


def test_quiet_and_verbose_exclude_each_other(refused):
    assert "contradict each other" in refused("--quiet", "models", "-v")


def test_a_value_that_looks_like_an_option_of_all_commands_stays_after_two_dashes(asgat):
    code, _, errors = asgat("train", "--", "--quiet")
    assert code == 2
    assert "There is no data set '--quiet'" in errors


def test_numbers_go_to_standard_output_and_the_rest_elsewhere(asgat, place):
    code, output, errors = asgat(*TRAIN, "--json", "-")
    assert code == 0
    assert json.loads(output)["dataset"] == "karate"
    assert "Test scores on karate" in errors
    assert list(place.glob("*-*")) == [], "no file of that name"
    assert json.loads(asgat(*TRAIN, "--json", "-", "-q")[1])["dataset"] == "karate"
    assert asgat(*TRAIN, "--json", "-", "-q")[2] == ""
    assert "Test scores on karate" in asgat(*TRAIN)[1], "the next command prints as ever"
    code, output, errors = asgat("train", "karat", "--json", "-")
    assert (code, output) == (2, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_and_completes(shell, tmp_path):
    """As a user would: the command installs a script for the shell, which asks the command what fits."""
    program = Path(sys.executable).with_name("asgat")
    if not program.exists():
        pytest.skip("the command is not installed next to this Python")
    home = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [program, "--install-completion", shell], env=os.environ | home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{shell} completion installed in" in done.stdout
    script = next(path for path in tmp_path.rglob("*") if path.is_file() and "_ASGAT_COMPLETE" in path.read_text())
    assert f"complete_{shell}" in script.read_text()
    for words, found, other in (
        ("asgat tr", "train", "fit"),
        ("asgat train te", "texas", "cora"),
        ("asgat train --model sa", "sage", "gcn"),
        ("asgat models asgat-d", "asgat-deep", "asgat-plus"),
    ):
        asked = {"_ASGAT_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        asked |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        done = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, check=False)
        assert found in done.stdout, done
        assert other not in done.stdout


def test_every_command_has_a_summary_an_example_and_explained_options():
    root = get_command(app)
    assert list(root.commands) == COMMANDS  # type: ignore[attr-defined]
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        assert command.help, name
        assert "Example" in command.epilog, name
        for parameter in command.params:
            assert parameter.name == "help" or getattr(parameter, "help", None), f"{name} {parameter.name}"
