"""Error and bound by number of candidates, with trained filters; makes the figure of docs/linear-attention-error.md.

python benchmarks/candidates_sweep.py --datasets cora,chameleon --scale docs/results/scale.json --out docs
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from asgat.bench.certificate_error import certificate_errors, train_filters
from asgat.bench.epoch import published_config
from asgat.data import load_dataset
from asgat.nn.from_config import make_operator

CANDIDATES = [16, 20, 24, 32, 48]


def sweep(dataset: str, epochs: int) -> list[dict[str, Any]]:
    """Errors of filters that were trained on the benchmarks' table, on tables of other sizes."""
    data = load_dataset(dataset)
    config = published_config(dataset, epochs=epochs)
    model, _ = train_filters(data, config, torch.device("cpu"))
    rows = []
    for candidates in CANDIDATES:
        operator = make_operator(data.graph, config.replace(candidates=candidates))
        rows.append({"dataset": dataset, "candidates": candidates, **certificate_errors(model, operator)})  # type: ignore[arg-type]
        print(rows[-1], flush=True)
    return rows


def draw(rows: list[dict[str, Any]], scale: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, dataset in enumerate(sorted({row["dataset"] for row in rows})):
        own = [row for row in rows if row["dataset"] == dataset]
        x = [row["candidates_per_node"] for row in own]
        left.plot(x, [row["mean_bound"] for row in own], f"C{number}o--", label=f"{dataset}: mean bound")
        left.plot(x, [row["mean_error"] for row in own], f"C{number}o-", label=f"{dataset}: mean true error")
    left.set(yscale="log", xlabel="candidates per node", ylabel="error of a score (scores span about ±10)")
    left.set_title("Error of the table")
    left.legend(fontsize=8)
    nodes = [row["nodes"] for row in scale["rows"]]
    right.plot(nodes, [row["build_s"] for row in scale["rows"]], "C2o-", label="building the table")
    right.plot(nodes, [row["epoch_s"] for row in scale["rows"]], "C3o-", label="one epoch, training and evaluation")
    right.set(xscale="log", yscale="log", xlabel="nodes (mean degree 10)", ylabel="seconds on 2 cores")
    exponents = f"exponents {scale['exponent_build']:.2f} and {scale['exponent_epoch']:.2f}"
    right.set_title(f"Growth with the graph: {exponents}")
    right.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="cora,chameleon")
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--scale", type=Path, default=Path("docs/results/scale.json"))
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    rows = [row for dataset in options.datasets.split(",") for row in sweep(dataset, options.epochs)]
    (options.out / "results" / "candidates.json").write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    draw(rows, json.loads(options.scale.read_text()), options.out / "figures" / "linear-attention.png")


if __name__ == "__main__":
    main()
