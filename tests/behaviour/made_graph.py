"""A graph of one's own as files, of which the whole truth is known."""

import csv
from collections.abc import Iterable, Mapping
from math import log
from pathlib import Path

import numpy as np

KINDS = ("ash", "birch", "cedar")
FEATURES = 12


def write_graph(
    folder: Path, seed: int = 0, nodes: int = 900, same: float = 0.1, signal: float = 0.45, one_way: bool = False
) -> dict[str, str]:
    """Writes `nodes.csv` and `edges.csv`, and returns the classes of the nodes whose label the files leave out.

    Two in five nodes have a label and a part: train, val or test. Ids and rows are in an order of their own, so that
    what goes by position goes wrong.

    Args:
        folder: where.
        seed: of everything but what the classes look like.
        nodes: how many; edges are twice as many.
        same: share of edges within a class.
        signal: how far the features of the classes are apart, in standard deviations.
        one_way: edges lead from every class to the next one, so that their direction tells the class.
    """
    rng, looks = np.random.default_rng(seed), np.random.default_rng(7).normal(size=(len(KINDS), FEATURES))
    y = rng.integers(0, len(KINDS), nodes)
    edges: set[tuple[int, int]] = set()
    while len(edges) < 2 * nodes:
        a, b = (int(end) for end in rng.integers(0, nodes, 2))
        typical = y[b] == (y[a] + 1) % len(KINDS) if one_way else y[a] != y[b]
        if a != b and (b, a) not in edges and bool(typical) == (rng.random() < 1 - same):
            edges.add((a, b))
    x = signal * looks[y] + rng.normal(size=(nodes, FEATURES))
    name = [f"tree {i}" for i in rng.permutation(nodes)]
    labelled = rng.permutation(nodes)[: 2 * nodes // 5].tolist()
    part = {node: ("train", "train", "train", "val", "test")[place % 5] for place, node in enumerate(labelled)}
    columns = [f"f{i}" for i in range(FEATURES)]
    rows = [
        [name[i], KINDS[y[i]] if i in part else "", part.get(i, ""), *(f"{value:.4f}" for value in x[i])]
        for i in rng.permutation(nodes).tolist()
    ]
    _write(folder / "nodes.csv", [["id", "kind", "part", *columns], *rows])
    _write(folder / "edges.csv", [["source", "target"], *([name[a], name[b]] for a, b in sorted(edges))])
    return {name[i]: KINDS[y[i]] for i in range(nodes) if i not in part}


def _write(path: Path, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def scores(predictions: Path, truth: Mapping[str, str]) -> dict[str, float]:
    """Share of nodes predicted as they are, and their log-loss, from `predictions.csv`."""
    rows = {row["id"]: row for row in read_rows(predictions)}
    right = sum(rows[node]["prediction"] == kind for node, kind in truth.items())
    loss = -sum(log(max(float(rows[node][f"p({kind})"]), 1e-12)) for node, kind in truth.items())
    return {"accuracy": right / len(truth), "log_loss": loss / len(truth)}
