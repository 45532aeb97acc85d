"""An option with one value is given once, to any command."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from asgat.cli.app import app
from asgat.errors import AsgatError
from reproduce.app import app as reproduce


def commands(of: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    if not hasattr(of, "commands"):
        yield words, of
    for name, command in getattr(of, "commands", {}).items():
        yield from commands(command, (*words, name))


SINGLE, REPEATED = list[Any](), list[Any]()
for program in (app, reproduce):
    for words, command in commands(get_command(program)):
        for option in command.params:
            if option.param_type_name == "option" and not option.is_flag:
                case = pytest.param(program, words, option, id=" ".join((*words, option.opts[0])))
                (REPEATED if option.multiple else SINGLE).append(case)


@pytest.mark.parametrize(("program", "words", "option"), SINGLE)
def test_an_option_given_twice_is_refused(program: Any, words: tuple[str, ...], option: Any) -> None:
    result = CliRunner().invoke(program, [*words, option.opts[0], "1", option.opts[-1], "2"])
    assert isinstance(result.exception, AsgatError), result.output
    name = next(spelling for spelling in option.opts if spelling.startswith("--"))
    assert str(result.exception) == f"{name} takes one value, but is given 2: '1', '2'. Give it once."


@pytest.mark.parametrize(("program", "words", "option"), REPEATED)
def test_a_list_goes_on_repeating(program: Any, words: tuple[str, ...], option: Any) -> None:
    spelling = option.opts[0]
    result = CliRunner().invoke(program, [*words, spelling, "1", spelling, "2", "--no-such-option"])
    assert "--no-such-option" in result.output


def test_the_options_that_are_lists() -> None:
    assert {"--set", "--split", "--ignore"} <= {parameter.values[2].opts[0] for parameter in REPEATED}


def test_values_are_shown_in_one_sentence(refused: Any) -> None:
    found = refused("fit", "--edges", "e.csv", "--label", "a", "--label=b\x1b", "--label", "a")
    assert found == "--label takes one value, but is given 3: 'a', 'b\\x1b', 'a'. Give it once."


def test_flags_and_lists_may_be_repeated(asgat: Any) -> None:
    words = ["train", "karate", "--model", "mlp", "--splits", "0", "--set", "epochs=2", "--set", "hidden=4"]
    code, _, errors = asgat(*words, "--fresh", "--fresh", "-q", "--quiet")
    assert (code, errors) == (0, "")
