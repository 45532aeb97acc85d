"""What a user can do after reading a report."""

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from asgat.errors import counted
from asgat.estimator.trained_run import TrainedRun
from asgat.leaderboard.claims import is_better
from asgat.leaderboard.standings import CUT, TRY_NEXT, Leaderboard
from asgat.nn.attention_model import AttentionModel

LOW_RECALL = 0.5
FEW_NODES = 5  # test nodes of a class below which its recall says little
LARGE_ERROR = 0.1  # of calibration


class Step(NamedTuple):
    """A sentence, and a command where there is one."""

    text: str
    command: str = ""


def next_steps(
    run: TrainedRun,
    result: dict[str, Any],
    board: Leaderboard | None,
    classes: list[dict[str, Any]],
    calibration: dict[str, Any] | None,
) -> Iterator[Step]:
    """Advice that follows from the scores first, then what can be done with the model."""
    path = shlex.quote(str(run.path))
    gain = (result.get("test") or {}).get("gain")
    if gain is not None and not is_better(tuple(gain)):
        yield Step(f"The model may be no better than guessing; {TRY_NEXT}.")
    if board is not None and board.cut:
        yield Step(CUT)
    weak = [row for row in classes if row["nodes"] >= FEW_NODES and row["recall"] < LOW_RECALL]
    if weak:
        worst = min(weak, key=lambda row: row["recall"])
        text = (
            f"Class {worst['class']} is recognised in {worst['recall']:.0%} of its test nodes; label more of its nodes"
        )
        yield Step(text + (", or choose by --metric macro_f1." if run.is_user_graph else "."))
    if calibration is not None and calibration["error"] > LARGE_ERROR:
        text = f"The probabilities are poorly calibrated: they are off by {100 * calibration['error']:.0f} points"
        yield Step(text + (" on average; --metric log_loss selects a model by them." if board else " on average."))
    if run.is_user_graph:
        unlabelled = int((run.y < 0).sum())
        if unlabelled:
            yield Step(f"Predict {counted(unlabelled, 'node')} without a label:", f"asgat predict {path}")
        elif not run.belongs_to_graph:
            other = f"asgat predict {path} --edges EDGES --nodes NODES"
            yield Step("Predict the nodes of another graph with the same columns:", other)
        if len(result.get("rows") or []) == 1:
            yield Step("See how much the score depends on the split: fit again with --repeats 5.")
        if board is None:
            yield Step("Compare with other models: fit without --model.")
        elif board.preset != "best" and not board.cut:
            yield Step("Try more settings, for up to an hour: fit with --preset best.")
    if isinstance(run.model, AttentionModel) and run.model.convs:
        node = shlex.quote(str(run.ids[0]))
        yield Step("See every node that one node attends to:", f"asgat explain {path} --node {node}")
