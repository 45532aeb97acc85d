import json

import pytest
import torch

from asgat.data import load_dataset
from asgat.tuning import space
from reproduce.authors_program import ALIASES, DIFFERENCES, measure

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def published(monkeypatch):
    """Karate as if the authors had published settings for it, and few epochs for all."""
    monkeypatch.setitem(space.CHEBYSHEV, "karate", {"order": 3, "heads": 2, "hidden": 4, "k": 3, "lr": 0.1})
    monkeypatch.setitem(space.PROGRAM, "epochs", 2)


@pytest.mark.parametrize("what", ["ours", "program", *DIFFERENCES])
def test_every_difference_can_be_taken_over(what):
    model = "asgat-exact" if what == "ties" else "asgat-cheb"
    row = measure(load_dataset("karate"), model, what, 1, CPU)
    assert (len(row["per_run"]), len(row["per_seed"]), row["runs"]) == (10, 1, 10)
    assert row["test"] == pytest.approx(row["per_seed"][0])
    assert 0 <= row["lost"] <= 10


def test_a_difference_makes_a_difference():
    karate = load_dataset("karate")
    plain = measure(karate, "asgat-cheb", "ours", 1, CPU)
    assert measure(karate, "asgat-cheb", "ours", 1, CPU)["per_run"] == plain["per_run"]
    assert measure(karate, "asgat-cheb", "weights and filter", 1, CPU)["val"] != plain["val"]
    assert {name for names in ALIASES.values() for name in names} <= set(DIFFERENCES)


def test_the_command_measures_what_its_file_has_not(reproduce, place, refused, monkeypatch):
    words = ["differences", "--datasets", "karate", "--models", "asgat-cheb", "--seeds", 1, "--json", "d.json"]
    assert "--take has no difference 'weight'. Did you mean 'weights'?" in refused(*words, "--take", "weight")
    code, output, errors = reproduce(*words, "--take", "ours,bias")
    assert (code, "bias" in output) == (0, True), errors
    assert [row["taken"] for row in json.loads((place / "d.json").read_bytes())["rows"]] == ["ours", "bias"]
    monkeypatch.setattr("reproduce.authors_program.train", None)  # a second training would fail
    assert reproduce(*words, "--take", "ours,bias")[0] == 0
    (place / "d.json").write_text("[]")
    code, _, errors = reproduce(*words)
    assert (code, "d.json does not hold rows of this command" in errors) == (2, True)
