import json

import pytest

from asgat.cli.output import console
from asgat.data import DATASETS, dataset_names


def test_datasets_without_files_shows_the_published_figures(asgat, cells, place, monkeypatch):
    def no_network(*_):
        raise AssertionError("a listing fetches nothing")

    monkeypatch.setattr("asgat.data.download._download", no_network)
    code, output, _ = asgat("datasets", "--json", "out/numbers.json")
    assert code == 0
    written = json.loads((place / "out/numbers.json").read_text())
    assert list(written) == ["rows"]
    rows = {row["name"]: row for row in written["rows"]}
    assert list(rows) == dataset_names()
    for name, info in DATASETS.items():
        row, figures = rows[name], info.statistics
        assert (row["nodes"], row["edges"], row["features"]) == (
            figures.nodes,
            figures.entries,
            figures.features,
        )
        assert (row["classes"], row["beta"]) == (figures.classes, pytest.approx(figures.beta, abs=5e-4))
        assert row["protocols"][0] == info.default_protocol
        assert row["measured"] == (name in ("csbm", "digits", "karate"))
        assert f"{figures.nodes:,}" in output
    marked = {row[0].removesuffix(" ○") for row in cells(output) if row[0].endswith(" ○")}
    assert marked == {name for name, row in rows.items() if not row["measured"]}
    assert "copy of Texas" in output


@pytest.mark.parametrize("width", [50, 80])
def test_names_are_never_cut_and_nothing_is_at_80_characters(width, asgat, monkeypatch):
    monkeypatch.setattr(console, "_width", width)
    _, output, _ = asgat("datasets")
    table = output.partition("entries: ")[0]
    assert [name for name in dataset_names() if f" {name} " not in table] == []
    assert ("…" in table) == (width < 80)
    assert max(map(len, table.splitlines())) <= width
