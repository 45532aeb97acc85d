import subprocess
import sys
import warnings

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from asgat import __version__
from asgat.cli import main
from asgat.cli.app import app
from asgat.errors import AsgatError

COMMANDS = [
    "datasets",
    "models",
    "train",
    "compare",
    "tune",
    "reproduce",
    "fit",
    "predict",
    "explain",
    "report",
    "embed",
]
COMMANDS += ["convert", "bench"]


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


@pytest.mark.parametrize("kind", [DeprecationWarning, FutureWarning])
def test_a_deprecation_in_pyg_is_not_shown_to_users(kind, monkeypatch):
    def command(**_):
        warnings.warn("`torch.jit.script` is deprecated. Please switch to `torch.compile`.", kind, stacklevel=1)
        warnings.warn("shown", kind, stacklevel=1)

    monkeypatch.setattr("asgat.cli.app.app", command)
    before = list(warnings.filters)
    with pytest.raises(kind, match="shown"):
        main()
    assert warnings.filters == before, "the filter ends with the command"


def test_errors_reach_callers_of_the_app():
    result = CliRunner().invoke(app, ["train", "karat"])
    assert isinstance(result.exception, AsgatError)


def test_exit_codes_of_the_process(asgat, place):
    code, output, errors = asgat("train", "karat", process=True)
    assert (code, output) == (2, "")
    assert errors.startswith("error: There is no data set 'karat'. Did you mean 'karate'?")
    assert "Traceback" not in errors
    assert list(place.iterdir()) == []


def test_a_closed_pipe_gives_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "asgat", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    process.stderr.close()
    process.wait(60)
    assert "Traceback" not in errors


def test_help_and_version(asgat):
    assert asgat("--version") == (0, f"{__version__}\n", "")
    code, output, _ = asgat("--help")
    assert code == 0
    assert all(command in output for command in ("datasets", "models", "train", "compare", "embed"))
    code, output, _ = asgat("train", "--help")
    assert code == 0
    assert all(option in output for option in ("--splits", "--seed", "--set", "--device", "--out", "--json"))


def test_every_command_has_a_summary_an_example_and_explained_options():
    root = get_command(app)
    assert list(root.commands) == COMMANDS  # type: ignore[attr-defined]
    commands = {**root.commands, **root.commands["bench"].commands}  # type: ignore[attr-defined]
    del commands["bench"]
    for name, command in commands.items():
        assert command.help, name
        assert "Example" in command.epilog, name
        for parameter in command.params:
            assert parameter.name == "help" or getattr(parameter, "help", None), f"{name} {parameter.name}"
