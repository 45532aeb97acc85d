from pathlib import Path

import pytest

from asgat.errors import AsgatError
from reproduce.experiment import EXPERIMENTS, datasets_of, difference, mean_std, row_of, rows_of, run_experiment
from reproduce.study import NoResultError, Study


def test_numbers_tables_and_figures_are_written(run_quick, study):
    study.skipped["of an earlier experiment"] = "no files"
    result, text, files = run_quick("micro")
    assert [file.name for file in files] == ["micro.json", "micro.png"]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert (result["quick"], result["about"]["seeds"], result["about"]["skipped"]) == (True, [0], {})
    assert {"torch", "asgat"} <= set(result["about"]["versions"])
    assert "gcn" in text


def test_no_rows_are_an_error(study):
    with pytest.raises(NoResultError, match="authors has no result"):
        run_experiment("authors", study)
    assert not study.out.exists()
    with pytest.raises(AsgatError, match=r"no experiment 'micr'. Did you mean 'micro'"):
        run_experiment("micr", Study(study.out))


def test_every_experiment_asks_something_and_is_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    for name, entry in EXPERIMENTS.items():
        assert set(entry["quick"]) <= set(entry["datasets"])
        assert entry["question"].endswith((".", "?"))
        assert f"`{name}`" in page


def test_rows_by_their_entries():
    rows = [{"dataset": name, "k": k, "list": [k]} for name in ("cora", "texas") for k in (1, 2)]
    result = {"rows": rows}
    assert datasets_of(result) == ["cora", "texas"]
    assert rows_of(result, dataset="texas") == rows[2:]
    assert row_of(result, dataset="cora", k=2) is rows[1]
    assert row_of(result, k=3) is None


def test_scores_are_in_percent():
    assert mean_std(None) == "–"
    assert mean_std(0.8512, 0.0123) == "85.1 ± 1.2"
    assert difference(0.9, 0.85) == "+5.0"
    assert difference(0.9, None) == difference(None, 0.9) == "–"
