"""A figure of a search."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from asgat.report.figures import new_figure, write_png
from asgat.tuning.space import Range, Space


def study_figure(rows: Sequence[dict[str, Any]], space: Space, path: Path, title: str) -> Path:
    """Draws scores over the trials, the best so far, and the score against every setting searched."""
    columns = 4
    lines = -(-len(space) // columns)
    figure = new_figure(12.0, 3.2 + 2.4 * lines)
    grid = figure.add_gridspec(lines + 1, columns, height_ratios=[1.3] + [1.0] * lines)
    score = 100.0 * np.array([row["value"] for row in rows])
    trained = np.array(["error" not in row and not row.get("diverged") for row in rows])
    low = _lowest_shown(score[trained])
    bottom, top = low - 1.0, score.max() + 1.0
    shown = np.maximum(score, low)  # failed trials are drawn on the lower edge

    over = figure.add_subplot(grid[0, :])
    number = np.array([row["trial"] for row in rows])
    over.scatter(number[trained], shown[trained], s=18, color="tab:blue", alpha=0.7, label="trial")
    if not trained.all():
        label = "diverged or failed"
        over.scatter(number[~trained], shown[~trained], s=22, marker="x", color="tab:red", label=label)
    over.step(number, np.maximum(np.maximum.accumulate(score), low), where="post", color="black", label="best so far")
    over.set(xlabel="trial", ylabel="mean score in %", title=title, ylim=(bottom, top))
    over.legend()
    best = int(score.argmax())
    for place, (key, values) in enumerate(space.items()):
        axis = figure.add_subplot(grid[1 + place // columns, place % columns])
        drawn = [row["settings"].get(key) for row in rows]
        if isinstance(values, Range):
            x = np.array(drawn, dtype=float)
            if values.log:
                axis.set_xscale("log")
            axis.set_xlim(values.low, values.high)
        else:
            jitter = np.random.default_rng(0).uniform(-0.18, 0.18, len(drawn))
            x = np.array([values.index(value) for value in drawn]) + jitter
            axis.set_xticks(range(len(values)), [str(value).lower() for value in values])
            axis.set_xlim(-0.5, len(values) - 0.5)
        axis.scatter(x, shown, s=14, c=number, cmap="viridis", alpha=0.8, clip_on=False)
        ring = {"facecolors": "none", "edgecolors": "tab:red", "linewidths": 1.6}
        axis.scatter(x[best], shown[best], s=70, clip_on=False, **ring)
        axis.set(xlabel=key, ylim=(bottom, top))
        axis.tick_params(labelsize=8)
    note = "Below: score against each setting; later trials are lighter; the best has a ring."
    figure.supxlabel(note, fontsize=9, color="0.35")
    return write_png(figure, path, dpi=110)


def _lowest_shown(score: np.ndarray) -> float:
    """The lower end of the score axis: trials far below the median are cut off, so that the best differ visibly."""
    if not score.size:
        return 0.0
    middle = float(np.median(score))
    return max(float(score.min()), middle - 4.0 * max(float(score.max()) - middle, 1.0))
