"""Table 2: macro-F1 of every model on every data set."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from asgat.experiments import paper, scores
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.reproduction import Reproduction

WORDS = "macro-F1"
QUICK = ["cora", "wisconsin", "texas"]


def collect(study: Reproduction) -> Result:
    return scores.collect(study, "macro", "macro_f1", paper.MACRO, QUICK)


def tables(result: Result) -> list[Table]:
    return scores.tables(result, WORDS)


def draw(result: Result) -> dict[str, Any]:
    return {"macro": scores.draw(result, WORDS)}


QUESTION = "Table 2: macro-F1 of ASGAT and the baselines on the eight data sets."
EXPERIMENT = Experiment("macro", QUESTION, collect, tables, draw)
