"""From two CSV files to predictions: what `asgat fit` and `asgat predict` do, in Python.

Run it with: python examples/own_csv.py
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.predictions import predictions_of, write_predictions
from asgat.tabular.assembly import read_graph


def make_files(folder: Path, people: int = 200) -> None:
    """A market where buyers mostly meet sellers: neighbours differ. A third of the labels are missing."""
    draw = random.Random(0)
    kind = {f"p{i}": draw.choice(["buyer", "seller"]) for i in range(people)}
    names = list(kind)
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "kind", "age", "town", "newsletter"])
        for name in names:
            age = round(draw.gauss(35 if kind[name] == "buyer" else 45, 8))
            label = kind[name] if draw.random() < 0.67 else ""
            table.writerow([name, label, age, draw.choice(["Ulm", "Bonn", ""]), draw.choice(["yes", "no"])])
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["source", "target"])
        for name in names:
            for other in draw.sample(names, 8):
                if draw.random() < (0.6 if kind[name] != kind[other] else 0.1):
                    table.writerow([name, other])


def main(folder: Path = Path("runs/own-csv"), epochs: int = 200) -> float:
    folder.mkdir(parents=True, exist_ok=True)
    make_files(folder)
    graph = read_graph(folder / "edges.csv", folder / "nodes.csv", label="kind")
    model = ASGATClassifier(epochs=epochs).fit(graph)
    for advice in model.health_.advice:
        print(f"{advice.setting} = {advice.value}: {advice.reason}")
    model.save_pretrained(folder / "run")

    again = ASGATClassifier.from_pretrained(folder / "run")
    predictions = predictions_of(again, folder / "edges.csv", folder / "nodes.csv")
    write_predictions(predictions, folder / "predictions.csv")
    share = again.score(graph)
    print(f"{share:.0%} of the labelled people are correct; predictions are in {folder / 'predictions.csv'}")
    return share


if __name__ == "__main__":
    main()
