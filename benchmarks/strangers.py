"""Is what ``asgat fit`` chooses as good as the best model it tried? Scored on test nodes, after the choice.

For every graph: ``asgat fit`` with its defaults and ``--repeats 3``, every entry of the leaderboard, and how far the
chosen model's test score is from the best entry's.

    python benchmarks/strangers.py ../shared/data/strangers --graphs reed98,usa-airports --out strangers.json

The folder holds graphs as a user has them: ``NAME.npz``, or ``NAME/edges.csv`` and ``NAME/nodes.csv``. Graphs of
``asgat datasets``, such as texas, are written as such tables first, with every split as a column, of which each repeat
takes the next, or with the one named as in ``texas:3``. Graphs named so are scored together at the end, too, by the
mean over their splits.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LABELS = {"reed98": "gender", "usa-airports": "activity", "twitch-engb": "mature"}
GRAPHS = "reed98,usa-airports,twitch-engb,blogcatalog,amazon-photo"
POINTS = 1.0  # the chosen model may be this far below the best entry


def as_tables(name: str, folder: Path) -> list[str]:
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
    files = ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv")]
    return [*files, "--label", "label", *(word for name in parts for word in ("--split", name))]


def options_of(name: str, folder: Path, place: Path) -> list[str]:
    label = ["--label", LABELS.get(name, "label")]
    if (folder / f"{name}.npz").exists():
        return ["--edges", str(folder / f"{name}.npz"), *label]
    if (folder / name).is_dir():
        return ["--edges", str(folder / name / "edges.csv"), "--nodes", str(folder / name / "nodes.csv"), *label]
    return as_tables(name, place)


def fit(name: str, folder: Path, more: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as held:
        place = Path(held)
        files = ["--out", str(place / "run"), "--json", str(place / "result.json")]
        command = [sys.executable, "-m", "asgat", "fit", *options_of(name, folder, place), *files, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        board: dict[str, Any] = json.loads((place / "result.json").read_bytes())["leaderboard"]
    return board


def score(name: str, board: dict[str, Any]) -> dict[str, Any]:
    """Prints every entry; whether the choice is near the best on test nodes and significantly better than guessing."""
    metric, chosen = board["metric"], board["chosen"]
    tested = [row for row in board["rows"] if row["test"] is not None]
    for row in tested:
        low, high = row["interval"]
        picked = f"  chosen {row['chosen']} of {board['repeats']}" if row["chosen"] else ""
        figures = (
            f"{100 * row['test'][metric]:6.1f}  ({100 * low:.1f} – {100 * high:.1f})  val. {100 * row['val']:5.1f}"
        )
        print(f"  {row['name']:28}{figures}  {row['seconds']:6.0f} s{picked}  {row['note']}")
    guess = next(row for row in tested if row["name"] == "guessing")
    best = max((row for row in tested if row is not guess), key=lambda row: row["test"][metric])
    score, low = 100 * chosen["test"][metric], 100 * chosen["interval"][0]
    behind, guessed = 100 * best["test"][metric] - score, 100 * guess["test"][metric]
    verdict = {
        "graph": name,
        "chosen": chosen["name"],
        "test": score,
        "low": low,
        "best": best["name"],
        "best_test": 100 * best["test"][metric],
        "guessing": guessed,
        "near": behind <= POINTS,
        "beats_guessing": board["sentences"][0].startswith("Better than guessing"),
        "seconds": board["seconds"],
        "cut": board["cut"],
    }
    print(f"  → chosen {score:.1f} (from {low:.1f}), best entry {best['name']} {verdict['best_test']:.1f}, guessing "
          f"{guessed:.1f}: {'near' if verdict['near'] else 'NOT near'} the best, "
          f"{'above' if verdict['beats_guessing'] else 'NOT above'} guessing; {board['seconds']:.0f} s"
          f"{', cut by the time limit' if board['cut'] else ''}", flush=True)  # fmt: skip
    return verdict


def score_splits(name: str, boards: list[dict[str, Any]]) -> None:
    """Compares the chosen models with the entry that is best on average over splits."""
    scores: dict[str, list[float]] = {}
    for board in boards:
        for row in board["rows"]:
            if row["test"] is not None:
                scores.setdefault(row["name"], []).append(100 * row["test"][board["metric"]])
    means = {entry: sum(own) / len(own) for entry, own in scores.items() if len(own) == len(boards)}
    chosen = sum(100 * board["chosen"]["test"][board["metric"]] for board in boards) / len(boards)
    entries = ", ".join(f"{entry} {mean:.1f}" for entry, mean in sorted(means.items(), key=lambda one: -one[1]))
    print(f"{name}, mean of {len(boards)} splits: chosen {chosen:.1f}; {entries}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="with the graphs")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=10.0, help="minutes")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file with everything")
    given = parser.parse_args()
    more = [f"--repeats={given.repeats}", f"--time-limit={given.time_limit}", f"--preset={given.preset}"]
    more.append(f"--seed={given.seed}")
    found = {}
    for name in given.graphs.split(","):
        print(f"{name}:", flush=True)
        board = fit(name, given.folder, more)
        found[name] = {"verdict": score(name, board), "leaderboard": board}
        if given.out:
            given.out.write_text(json.dumps(found, indent=1))
    for name in dict.fromkeys(key.partition(":")[0] for key in found):
        boards = [one["leaderboard"] for key, one in found.items() if key.partition(":")[0] == name]
        if len(boards) > 1:
            score_splits(name, boards)


if __name__ == "__main__":
    main()
