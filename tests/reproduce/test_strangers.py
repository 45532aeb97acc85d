import csv
import json

import numpy as np
import pytest

from reproduce import strangers
from reproduce.strangers import as_tables, mean_of_splits, verdict


def board(chosen, **scores):
    """A leaderboard with these test scores; the chosen model has an interval of 0.1 around its score."""
    rows = [{"name": name, "test": {"micro_f1": score}, "val": score} for name, score in scores.items()]
    own = {"name": "mlp", "test": {"micro_f1": chosen}, "interval": [chosen - 0.1, chosen + 0.1]}
    cut = {"name": "cut", "test": None, "val": None}
    sentences = ["Better than guessing: …" if chosen > 0.6 else "Not significantly better than guessing: …"]
    return {
        "metric": "micro_f1", "chosen": own, "rows": [*rows, cut], "seconds": 3.0, "cut": False, "sentences": sentences,
    }  # fmt: skip


@pytest.mark.parametrize(("chosen", "near", "above"), [(0.8, True, True), (0.79, True, True), (0.55, False, False)])
def test_the_verdict(chosen, near, above):
    found = verdict(board(chosen, guessing=0.5, mlp=0.7, gcn=0.8))
    assert (found["best"], found["best_test"], found["near"], found["beats_guessing"]) == ("gcn", 80.0, near, above)


def test_the_mean_over_splits_is_of_entries_that_all_have():
    means = mean_of_splits([board(0.8, guessing=0.5, mlp=0.7), board(0.6, guessing=0.5, gcn=0.9)])
    assert means == {"chosen": pytest.approx(70.0), "guessing": pytest.approx(50.0)}


def test_a_data_set_becomes_tables_of_a_user(tmp_path):
    options = as_tables("karate:3", tmp_path)
    assert options[-2:] == ["--split", "split_3"]
    with open(tmp_path / "nodes.csv", newline="", encoding="utf-8") as file:
        nodes = list(csv.DictReader(file))
    assert len(nodes) == 34
    assert {row["split_3"] for row in nodes} == {"train", "val", "test"}
    assert len((tmp_path / "edges.csv").read_text().splitlines()) == 1 + 78


def test_the_command(reproduce, place, monkeypatch):
    (place / "club").mkdir()
    rng = np.random.default_rng(0)
    lines = [f"n{a},n{b}" for a, b in rng.integers(0, 80, (200, 2))]
    (place / "club" / "edges.csv").write_text("\n".join(["source,target", *lines]))
    (place / "club" / "nodes.csv").write_text("\n".join(["id,label,x", *(f"n{v},c{v % 2},{v % 2}" for v in range(80))]))
    fit = strangers.fit
    monkeypatch.setattr(strangers, "fit", lambda name, folder, words: fit(name, folder, [*words, "--preset=quick"]))
    code, output, errors = reproduce("strangers", ".", "--graphs", "club", "--repeats", 1, "--json", "s.json")
    assert code == 0, errors
    assert "what fit chose" in output
    assert json.loads((place / "s.json").read_bytes())["club"]["verdict"]["guessing"] > 0
