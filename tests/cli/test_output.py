import logging
import os
import re
import signal
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from asgat.cli import output
from asgat.cli.output import (
    RunProgress,
    SafeConsole,
    check_writable,
    comparison_table,
    make_table,
    printable,
    result_table,
    say,
)
from asgat.errors import AsgatError

NAMES = {
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x9b2Jx": r"\x9b2Jx",
    "a\rb\x08\x7f\0": r"a\rb\x08\x7f\x00",
    "\u202egnp.exe": r"\u202egnp.exe",
    "lone \udc9b": r"lone \udc9b",
    "Köln, 東京, می\u200cخواهم, 👩\u200d🔬": "Köln, 東京, می\u200cخواهم, 👩\u200d🔬",
    r"[/red] :smile: \x1b": r"[/red] :smile: \x1b",
}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_control_characters_are_printed_as_escapes(name):
    assert printable(name) == NAMES[name]
    assert printable(f"a\n\t{name}") == f"a\n\t{NAMES[name]}"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_nothing_a_console_prints_controls_the_terminal(name):
    from rich.markup import escape

    console = SafeConsole(width=200, file=StringIO(), highlight=False, emoji=False, force_terminal=True, no_color=True)
    table = Table(escape(name), title=escape(name))
    table.add_row(escape(name))
    console.print(table)
    console.print(name, markup=False)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert written.count(NAMES[name]) == 4
    assert "\x1b[31m" not in written
    assert not {"\x9b", "\r", "\x07", "\x08", "\x7f", "\0", "\u202e"} & set(written)


def test_a_path_stays_on_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    say("run directory: runs/" + "[x]" * 20)
    assert capsys.readouterr().out == "run directory: runs/" + "[x]" * 20 + "\n"
    say("some words that are folded at the end of a line", wrap=True)
    assert capsys.readouterr().out.split("\n") == ["some words that are folded at ", "the end of a line", ""]


def test_the_consoles_of_a_command(capsys):
    def print_all():
        for one in (output.console, output.notes, output.errors):
            one.print("x")
        output.detail("[y]")
        return [text.split() for text in capsys.readouterr()]

    try:
        output.begin_output()
        assert print_all() == [["x"], ["x", "x"]]
        assert output.check_json(Path("-")) == Path("-")
        output.write_json(Path("-"), {"a": float("nan")})
        assert print_all() == [["{", '"a":', "null", "}"], ["x", "x", "x"]]
        output.begin_output(quiet=True)
        assert print_all() == [[], ["x"]]
        output.begin_output(verbose=True)
        assert print_all() == [["x"], ["x", "x", "[y]"]]
    finally:
        output.begin_output()


def test_check_writable(tmp_path):
    (tmp_path / "file").write_text("")
    assert check_writable(None) is None
    for good in (tmp_path / "file", tmp_path / "new" / "folder" / "result.json"):
        assert check_writable(good) == good
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "file" / "below", tmp_path / "pipe"):
        with pytest.raises(AsgatError, match="cannot be written"):
            check_writable(bad)


def test_numbers_that_cannot_be_written(asgat, place):
    (place / "file").write_text("kept")
    code, _, errors = asgat("datasets", "--json", "file/numbers.json")
    assert code == 2
    assert "file/numbers.json cannot be written" in errors
    code, _, errors = asgat("train", "karate", "--splits", "0", "--model", "mlp", "--set", "epochs=3", "--json", place)
    assert code == 2
    assert f"{place} cannot be written" in errors
    assert sorted(path.name for path in place.iterdir()) == ["file"], "refused before training"


def test_an_interruption_is_reported_whatever_is_pressed_meanwhile(monkeypatch, capsys):
    def pressed(words):
        os.kill(os.getpid(), signal.SIGINT)
        print(words)

    monkeypatch.setattr(output.errors, "print", pressed)
    with pytest.raises(typer.Exit) as exited, output.resumable("All is saved"):
        raise KeyboardInterrupt
    assert exited.value.exit_code == 130
    assert capsys.readouterr().out == "Interrupted. All is saved; run the same command again to resume.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def epoch(number, attempt=0):
    return SimpleNamespace(attempt=attempt, epoch=number, train_loss=0.123, val_loss=4.567, val_score=0.89)


@pytest.fixture
def progress():
    with RunProgress(2, epochs=10) as progress:
        yield progress


def test_the_latest_epoch_and_its_losses_are_shown(progress):
    progress(5, epoch(4))
    task = progress.bar.tasks[0]
    assert (task.completed, task.total, task.description) == (4, 10, "0/2 runs")
    assert all(figure in task.fields["figures"] for figure in ("run 5", "0.123", "4.567", "score 89.0"))


def test_a_score_that_is_a_loss_is_shown_as_one():
    with RunProgress(2, epochs=10, metric="log_loss") as progress:
        progress(5, SimpleNamespace(attempt=0, epoch=4, train_loss=0.1, val_loss=0.7, val_score=-0.7))
        assert progress.bar.tasks[0].fields["figures"].endswith("score 0.700")


def test_runs_may_be_interleaved_and_restarted(progress):
    for run, number, attempt in [(3, 1, 0), (5, 1, 0), (3, 2, 0), (5, 2, 0), (3, 1, 1), (7, 1, 0)]:
        progress(run, epoch(number, attempt))
        assert progress.bar.tasks[0].completed == number
        assert f"run {run} " in progress.bar.tasks[0].fields["figures"]
    progress.finished(1, 3)
    progress(5, epoch(3))
    assert progress.bar.tasks[0].description == "1/3 runs"
    progress.finished(3, 3)
    assert progress.bar.tasks[0].description == "3/3 runs"


def test_the_rows_of_a_table_are_counted_before_the_epochs(progress):
    progress.building(30, 80)
    task = progress.bar.tasks[0]
    assert (task.completed, task.total) == (30, 80)
    assert "candidate table" in task.fields["figures"]
    progress(0, epoch(1))
    assert (task.completed, task.total) == (1, 10)


def test_a_file_gets_no_bar(progress, capsys):
    progress(0, epoch(1))
    assert capsys.readouterr() == ("", "")


def printed(table, width):
    print_to = StringIO()
    SafeConsole(width=width, file=print_to, highlight=False, emoji=False).print(table)
    return print_to.getvalue()


def test_scores_fit_80_columns(cells):
    spread = {"mean": 0.912, "std": 0.083, "per_run": [0.912]}
    row: dict[str, Any] = {"dataset": "minesweeper", "model": "asgat-linear", "restarts": 123}
    row["rows"] = [{"seconds": 123.456}] * 10
    row |= {"micro_f1": spread, "macro_f1": spread, "roc_auc": spread, "val_roc_auc": 0.75, "epochs": 1000.0}
    row |= {"ms_per_epoch": 1234.5, "parameters": 123_456_789}
    figures = ["asgat-linear", *["91.2 ± 8.3"] * 3]
    for table, more in (
        (comparison_table([row]), ["1234.5", "1234.6", "123,456,789"]),
        (result_table(row), ["75.0", "10", "123", "1000", "1234.5"]),
    ):
        text = printed(table, 80)
        assert max(map(len, text.splitlines())) <= 80
        assert " ".join([*figures, *more]).split() == text.splitlines()[-2].split()


WORDS = st.text(st.sampled_from("abc0123456789.±"), min_size=1, max_size=30)
PHRASES = st.lists(WORDS, max_size=6).map(" ".join)


@given(
    st.integers(20, 130),
    st.lists(st.tuples(PHRASES, st.sampled_from(["figure", "name", "text"]), PHRASES, PHRASES), min_size=1, max_size=9),
    PHRASES,
)
def test_no_name_and_no_figure_of_any_table_is_cut(width, columns, title):
    kinds = {f"{i} {heading}": kind for i, (heading, kind, *_) in enumerate(columns)}
    left = [heading for heading, kind in kinds.items() if kind != "figure"]
    whole = [heading for heading, kind in kinds.items() if kind == "name"]
    rows = [[column[place] for column in columns] for place in (2, 3)]
    table = make_table(title, list(kinds), rows, left, whole)
    text = printed(table, width)
    pieces = [word for line in (title, *kinds) for word in line.split()]
    pieces += [
        p
        for row in rows
        for c, kind in zip(row, kinds.values(), strict=True)
        for p in (c.split() if kind == "text" else [c])
    ]
    assert all(piece in text for piece in pieces)
    assert text == printed(table, width), "printing leaves the table as it is"
    if max(map(len, text.splitlines())) > width:
        assert text == printed(table, 20), "it is as narrow as it can be"


def test_every_command_makes_its_tables_here():
    modules = [path for path in Path(output.__file__).parent.glob("*.py") if path.name != "output.py"]
    assert len(modules) > 8
    assert [path.name for path in modules if re.search(r"\b(Table|Columns)\(", path.read_text(encoding="utf-8"))] == []


def test_scores_are_shown_in_percent(cells):
    spread = {"mean": 0.5, "std": 0.25, "per_run": [0.25, 0.75]}
    result = {"dataset": "d", "model": "m", "micro_f1": spread, "macro_f1": spread, "val_micro_f1": 0.625}
    result |= {"rows": [{}, {}], "restarts": 3, "epochs": 17.4, "ms_per_epoch": 2.25}
    print_to = StringIO()
    console = Console(width=200, file=print_to)
    console.print(result_table(result))
    console.print(result_table({**result, "roc_auc": {**spread, "mean": 0.75}, "val_roc_auc": 0.875}))
    plain, auc = (row for row in cells(print_to.getvalue()) if row[0] == "m")
    assert plain == ["m", "50.0 ± 25.0", "50.0 ± 25.0", "62.5", "2", "3", "17", "2.2"]
    assert auc == ["m", "50.0 ± 25.0", "50.0 ± 25.0", "75.0 ± 25.0", "87.5", "2", "3", "17", "2.2"]


def test_numbers_are_right_aligned_and_texts_are_folded():
    table = make_table("Title", ("name", "text", "count"), left=("name", "text"), no_wrap=("name",))
    assert [(c.justify, c.no_wrap) for c in table.columns] == [("left", True), ("left", False), ("right", True)]
    table.add_row("a b c", "some words that are folded", "1 ± 2")
    lines = [line.rstrip() for line in printed(table, 24).splitlines()]
    assert lines[4:8] == [" a b c  some      1 ± 2", "        words", "        that are", "        folded"]


def test_the_name_of_a_graph_is_not_markup():
    spread = {"mean": 0.5, "std": 0.25}
    row = {
        "dataset": "[/red]",
        "model": "m",
        "micro_f1": spread,
        "macro_f1": spread,
        "ms_per_epoch": 1.0,
        "rows": [],
        "parameters": 2,
    }
    print_to = StringIO()
    Console(width=80, file=print_to).print(comparison_table([row]))
    assert "Test scores on [/red]" in print_to.getvalue()


def test_verbose_prints_what_the_package_reports_once(capsys):
    log = logging.getLogger("asgat.training.loop")
    try:
        for verbose in (True, True, False):
            output.begin_output(verbose=verbose)
            for text in ("1 thread", "1 thread", "2 threads"):
                log.info(text)
            log.debug("more than anyone wants")
            assert capsys.readouterr().err.splitlines() == (["1 thread", "2 threads"] if verbose else [])
        log.warning("Something was wrong.")  # whatever is asked for
        assert capsys.readouterr().err == "Something was wrong.\n"
    finally:
        output.end_output()
    assert not logging.getLogger("asgat").handlers
