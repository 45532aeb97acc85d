"""What each part of asgat-deep brings: validation scores of its channels, with and without adjacency rows.

    python benchmarks/deep_parts.py --device cuda --out parts.jsonl

Every data set with the same settings, three splits (or seeds), no test score. About four minutes on an H200.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asgat.data import load_dataset
from asgat.nn.registry import make_config
from asgat.training.runner import run

DATASETS = [
    *("cora", "citeseer", "pubmed", "texas", "cornell", "wisconsin", "cornell-true", "chameleon"),
    *("chameleon-directed", "squirrel", "squirrel-directed", "chameleon-filtered", "minesweeper"),
]
BASE = {"layers": 2, "hidden": 64, "heads": 4, "k": 5, "order": 8, "dropout": 0.5, "epochs": 300, "patience": 60}
OWN = {"minesweeper": {"layers": 6, "dropout": 0.2, "epochs": 600, "patience": 100}}
CHANNELS = ["attention", "filters", "attention+filters", "mean", "attention+mean", "attention+filters+mean"]
VARIANTS = [
    *({"channels": channels} for channels in CHANNELS),
    *({"channels": channels, "adjacency": True} for channels in ("attention", "attention+filters")),
]


def measure(name: str, device: str) -> Iterator[dict[str, Any]]:
    dataset = load_dataset(name)
    for variant in VARIANTS:
        config = make_config("asgat-deep", **{**BASE, **OWN.get(name, {}), **variant})
        rows = run(dataset, "asgat-deep", config, range(3), device=device)["rows"]
        yield {"dataset": name, **variant, "val": [row["val_score"] for row in rows]}


def table(rows: list[dict[str, Any]]) -> str:
    """Mean validation scores in percent, a data set a line, as Markdown."""
    headings = [f"{v['channels']}{', adjacency' if 'adjacency' in v else ''}" for v in VARIANTS]
    lines = ["| data set | " + " | ".join(headings) + " |", "|---" * (1 + len(headings)) + "|"]
    for name in dict.fromkeys(row["dataset"] for row in rows):
        scores = [100 * sum(row["val"]) / len(row["val"]) for row in rows if row["dataset"] == name]
        best = max(scores)
        lines.append(f"| {name} | " + " | ".join(f"**{s:.1f}**" if s == best else f"{s:.1f}" for s in scores) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--out", type=Path, help="file of JSON lines to add to")
    chosen = parser.parse_args()
    found = []
    for dataset in chosen.datasets:
        for row in measure(dataset, chosen.device):
            found.append(row)
            if chosen.out:
                with chosen.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(table(found))
