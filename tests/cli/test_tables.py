from io import StringIO
from typing import Any

from rich.console import Console

from asgat.cli.tables import comparison_table, make_table, result_table


def test_a_comparison_fits_80_columns(cells):
    spread = {"mean": 1.0, "std": 0.123, "per_run": [1.0]}
    row: dict[str, Any] = {"dataset": "minesweeper", "model": "asgat-exact"}
    row |= {"micro_f1": spread, "macro_f1": spread, "roc_auc": spread}
    row |= {"ms_per_epoch": 12345.6, "parameters": 123_456_789}
    print_to = StringIO()
    Console(width=80, file=print_to).print(comparison_table([row]))
    figures = ["100.0 ± 12.3"] * 3
    assert [*figures, "12345.6", "123,456,789"] == cells(print_to.getvalue())[-2][1:]


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


def test_numbers_are_right_aligned_and_some_columns_never_folded():
    table = make_table("Title", ("name", "count"), left=("name",), no_wrap=("count",))
    assert [(column.justify, column.no_wrap) for column in table.columns] == [("left", False), ("right", True)]


def test_the_name_of_a_graph_is_not_markup():
    spread = {"mean": 0.5, "std": 0.25}
    row = {
        "dataset": "[/red]",
        "model": "m",
        "micro_f1": spread,
        "macro_f1": spread,
        "ms_per_epoch": 1.0,
        "parameters": 2,
    }
    print_to = StringIO()
    Console(width=80, file=print_to).print(comparison_table([row]))
    assert "Test scores on [/red]" in print_to.getvalue()
