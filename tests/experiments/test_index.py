from pathlib import Path

from asgat.cli import reproduce as cli
from asgat.experiments.index import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_those_of_the_command():
    assert ", ".join(EXPERIMENTS) == cli.NAMES
    assert cli.ALL not in EXPERIMENTS


def test_every_experiment_asks_something_and_is_in_the_docs():
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert set(experiment.quick) <= set(experiment.datasets)
        assert experiment.question.endswith((".", "?"))
        assert f"`{name}`" in page
