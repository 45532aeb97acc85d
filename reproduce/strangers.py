"""Is what ``asgat fit`` chooses as good as the best model it tried? Scored on test nodes, after the choice.

Graphs are files as a user has them: ``NAME.npz``, or ``NAME/edges.csv`` and ``NAME/nodes.csv`` in a folder. Graphs of
``asgat datasets``, such as texas, are written as such tables first, with every split as a column, of which each repeat
takes the next, or with the one named as in ``texas:3``.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError

LABELS = {"reed98": "gender", "usa-airports": "activity", "twitch-engb": "mature"}  # the columns of labels
GRAPHS = "reed98,usa-airports,twitch-engb,blogcatalog,amazon-photo"
POINTS = 1.0  # the chosen model may be this far below the best entry


def fit(name: str, folder: Path, options: list[str]) -> dict[str, Any]:
    """The leaderboard of ``asgat fit`` on a graph, with test scores."""
    with tempfile.TemporaryDirectory() as held:
        place = Path(held)
        files = ["--out", place / "run", "--json", place / "result.json"]
        words = ["-m", "asgat", "fit", *_files(name, folder, place), *files, *options]
        done = subprocess.run([sys.executable, *map(str, words)], stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise AsgatError(f"asgat fit on {name} ended with exit code {done.returncode}; its error is above.")
        board: dict[str, Any] = json.loads((place / "result.json").read_bytes())["leaderboard"]
    return board


def verdict(board: dict[str, Any]) -> dict[str, Any]:
    """Whether the choice is near the best entry on test nodes, and significantly better than guessing."""
    metric, chosen = board["metric"], board["chosen"]
    scores = {row["name"]: 100 * row["test"][metric] for row in board["rows"] if row["test"] is not None}
    guessing = scores.pop("guessing")
    best, score, low = max(scores, key=scores.__getitem__), 100 * chosen["test"][metric], 100 * chosen["interval"][0]
    return {
        "chosen": chosen["name"],
        "test": score,
        "low": low,
        "best": best,
        "best_test": scores[best],
        "guessing": guessing,
        "near": scores[best] - score <= POINTS,
        "beats_guessing": board["sentences"][0].startswith("Better than guessing"),
        "seconds": board["seconds"],
        "cut": board["cut"],
    }


def mean_of_splits(boards: list[dict[str, Any]]) -> dict[str, float]:
    """The mean score of the choice and of every entry that all splits have."""
    scores: dict[str, list[float]] = {}
    for board in boards:
        for row in [{**board["chosen"], "name": "chosen"}, *board["rows"]]:
            if row["test"] is not None:
                scores.setdefault(row["name"], []).append(100 * row["test"][board["metric"]])
    return {name: sum(own) / len(own) for name, own in scores.items() if len(own) == len(boards)}


def _files(name: str, folder: Path, place: Path) -> list[Any]:
    """The options of ``asgat fit`` that read a graph."""
    label = ["--label", LABELS.get(name, "label")]
    if (folder / f"{name}.npz").exists():
        return ["--edges", folder / f"{name}.npz", *label]
    if (folder / name).is_dir():
        return ["--edges", folder / name / "edges.csv", "--nodes", folder / name / "nodes.csv", *label]
    return as_tables(name, place)


def as_tables(name: str, folder: Path) -> list[Any]:
    """Writes a benchmark graph as a user would have it; returns the options of ``asgat fit`` that read it."""
    from asgat.data import load_dataset

    name, _, split = name.partition(":")
    data = load_dataset(name)
    parts = {}
    for number in [int(split)] if split else range(len(data.splits)):
        held = parts[f"split_{number}"] = [""] * data.num_nodes
        for part, nodes in data.splits[number].parts().items():
            for node in nodes:
                held[node] = part
    with open(folder / "nodes.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", *parts, *(f"x{i}" for i in range(data.num_features))])
        for i in range(data.num_nodes):
            table.writerow([f"n{i}", f"c{data.y[i]}", *(held[i] for held in parts.values()), *data.x[i].tolist()])
    ends, _ = data.graph.edges_once()
    with open(folder / "edges.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["source", "target"], *([f"n{a}", f"n{b}"] for a, b in ends.T)])
    files = ["--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv"]
    return [*files, "--label", "label", *(word for name in parts for word in ("--split", name))]
