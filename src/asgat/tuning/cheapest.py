"""The cheapest of the trials of a search that are as good as the best."""

import math
from collections.abc import Sequence
from typing import Any

NEAR = 0.5  # standard errors of the best score by which a trial counts as equally good

Row = dict[str, Any]


def cheapest(rows: Sequence[Row], runs: int) -> Row:
    """The trial with the shortest training among those within half a standard error of the best score.

    Args:
        rows: trials with ``trial``, ``value``, ``seconds`` and ``std``, the standard deviation of the runs' scores;
            without it only equal scores count as equally good.
        runs: number of scores that a value is the mean of.
    """
    best = max(rows, key=lambda row: (row["value"], -row["trial"]))
    least = best["value"] - NEAR * best.get("std", 0.0) / math.sqrt(runs)
    near = [row for row in rows if row["value"] >= least and "error" not in row]
    return min(near, key=lambda row: (row["seconds"], -row["value"], row["trial"]), default=best)
