"""Commands and the scores they reach: the table `nets.toml`, and how a command is run and read."""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.behaviour.made_graph import scores, write_graph

Figures = dict[str, float]

TABLE = Path(__file__).with_name("nets.toml")
SLACK = 0.01


@dataclass(frozen=True)
class Net:
    """A command, and the mean and spread over seeds of the figures it reached.

    Attributes:
        name: its name in the table.
        command: what follows `asgat`, without seed and files; `fit` reads a graph of :func:`write_graph`.
        seeds: from how many seeds, 0 and up, the figures are.
        figures: for every figure its mean and standard deviation over the seeds.
        graph: arguments of :func:`write_graph`.
        slow: whether it takes more than some seconds.
    """

    name: str
    command: str
    seeds: int
    figures: Mapping[str, tuple[float, float]]
    graph: Mapping[str, Any]
    slow: bool = False

    @property
    def needs_data(self) -> bool:
        """Whether it reads published files."""
        return self.command.split()[0] != "fit" and self.command.split()[1] != "csbm"

    def allowed(self, figure: str, runs: int) -> float:
        """How far the mean over some seeds may be from the mean in the table: two standard errors of the difference,
        and a little more because the spread is itself an estimate."""
        return 2 * self.figures[figure][1] * sqrt(1 / runs + 1 / self.seeds) + SLACK

    def misses(self, found: Sequence[Figures]) -> list[str]:
        """What is further from the table than chance explains, of the figures with some seeds."""
        missed = []
        for figure, (mean, _) in self.figures.items():
            today, allowed = fmean(figures[figure] for figures in found), self.allowed(figure, len(found))
            if not abs(today - mean) <= allowed:
                missed.append(f"{figure} is {today:.4f} with {len(found)} seeds, but was {mean:.4f} ± {allowed:.4f}")
        return missed

    def run(self, seed: int, folder: Path) -> Figures:
        """The figures with a seed; the folder is empty."""
        words = [*self.command.split(), "--seed", seed, "--device", "cpu", "--out", folder / "run"]
        if words[0] == "fit":
            truth = write_graph(folder, **self.graph)
            numbers(folder, *words, *files_of(folder))
            run_command("predict", folder / "run", "--out", folder / "predictions.csv")
            return scores(folder / "predictions.csv", truth)
        result = numbers(folder, *words)
        if words[0] == "compare":
            models = str(words[words.index("--models") + 1]).split(",")
            return {name: row["micro_f1"]["mean"] for name, row in zip(models, result["rows"], strict=True)}
        runs = {f"run_{i}": score for i, score in enumerate(result["micro_f1"]["per_run"])}
        return {"micro_f1": result["micro_f1"]["mean"], "macro_f1": result["macro_f1"]["mean"], **runs}


def read_nets() -> list[Net]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return [
        Net(name, own["command"], own["seeds"], own["figures"], own.get("graph", {}), own.get("slow", False))
        for name, own in table.items()
    ]


def files_of(folder: Path) -> list[object]:
    """The options of `fit` for the graph that :func:`write_graph` wrote."""
    return ["--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv", "--label", "kind", "--split", "part"]


def numbers(folder: Path, *words: object) -> Any:
    """What a command writes with `--json`."""
    run_command(*words, "--json", folder / "result.json")
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def run_command(*words: object) -> None:
    """Runs `asgat` in this process, by the function its script calls: starting another takes longer than a training."""
    (script,) = entry_points(group="console_scripts", name="asgat")
    before, sys.argv = sys.argv, ["asgat", *map(str, words)]
    try:
        script.load()()
    except SystemExit as ended:
        if ended.code:
            raise AssertionError(f"{' '.join(sys.argv)} ended with {ended.code}") from None
    finally:
        sys.argv = before
