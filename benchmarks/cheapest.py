"""For every recipe: what the cheapest settings within half a standard error of the best validation score would save.

python benchmarks/cheapest.py docs/results/search*.jsonl

Reads logs of searches. Trials are compared with those of the same search, data set, model, runs and device. Of the
searches for a model on a data set the one with the best score is shown; those that did not log the spread of scores
and the seconds are left out.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from asgat.tuning.evaluation import cheapest

COSTLY = ("members", "layers", "hidden", "heads", "k", "order", "channels", "operator")


def trial(row: dict[str, Any]) -> dict[str, Any] | None:
    """A line of a log as a row that :func:`cheapest` takes; None if a number is missing."""
    scored_on = "held_out" if "held_out_mean" in row else "val"
    scores = row.get("val") if scored_on == "val" else None
    std = statistics.pstdev(scores) if isinstance(scores, list) else row.get(f"{scored_on}_std")
    if std is None or "judged" in row or row.get("seconds") is None or f"{scored_on}_mean" not in row:
        return None
    settings = {key: row["settings"][key] for key in COSTLY if key in row["settings"]}
    return {"value": row[f"{scored_on}_mean"], "std": std, "seconds": row["seconds"], "settings": settings}


def groups(paths: list[Path]) -> dict[tuple[str, str], list[tuple[str, int, list[dict[str, Any]]]]]:
    """Comparable trials, by data set and model: the search, the number of scores of each trial, and the trials."""
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            one = trial(row)
            if one is not None:
                extra = tuple(str(row.get(key)) for key in ("part", "form", "name", "device", "threads"))
                count = len(row["runs"]) * (row.get("folds") or 1)
                key = row["dataset"], row["model"], row["search"], count, extra
                found[key].append({**one, "trial": len(found[key])})
    by_model: dict[tuple[str, str], list[tuple[str, int, list[dict[str, Any]]]]] = defaultdict(list)
    for (dataset, model, search, count, _), rows in found.items():
        if len(rows) > 1:
            by_model[dataset, model].append((search, count, rows))
    return by_model


def main() -> None:
    print("| data set | model | search, trials | best | s | cheapest | s | of the time | settings, best → cheapest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (dataset, model), searches in sorted(groups([Path(name) for name in sys.argv[1:]]).items()):
        search, count, rows = max(searches, key=lambda one: max(row["value"] for row in one[2]))
        best, fast = max(rows, key=lambda row: (row["value"], -row["trial"])), cheapest(rows, count)
        changed = [
            f"{key} {best['settings'].get(key)} → {fast['settings'].get(key)}"
            for key in COSTLY
            if best["settings"].get(key) != fast["settings"].get(key)
        ]
        figures = " | ".join(f"{100 * row['value']:.2f} | {row['seconds']:.1f}" for row in (best, fast))
        share = f"{100 * fast['seconds'] / best['seconds']:.0f} %" if best["seconds"] else "–"
        print(f"| {dataset} | {model} | {search}, {len(rows)} | {figures} | {share} | {', '.join(changed) or '–'} |")


if __name__ == "__main__":
    main()
