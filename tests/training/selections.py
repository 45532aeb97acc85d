"""Trainings whose every selection is recorded, with selections used again or with each made from the whole table."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from asgat.data.dataset import Split
from asgat.kernels import select_top
from asgat.tables import row_operator
from asgat.training.loop import train_jobs
from asgat.training.program import Task
from asgat.training.run_state import Job, RunResult


def recorded_training(task: Task, split: Split, config: Any, full: bool) -> tuple[RunResult, list[str], int]:
    """The result, a digest of the nodes and scores of every attention in turn, and how often a table was selected from.

    With ``full`` nothing is remembered: no selection is used again, shared between layers, or helped by the last one.
    """
    operator, digests, calls = row_operator.RowOperator, [], 0
    top_each = operator.top_each

    def recording(self: Any, filters: Any, *arguments: Any) -> Any:
        found = []
        for chosen in [[one] for one in filters] if full else [filters]:
            if full:
                self._selected.clear()
            found += top_each(self, chosen, *arguments)
        for pair in found:
            parts = [part.detach().contiguous().numpy().tobytes() for part in pair]
            digests.append(hashlib.sha256(b"".join(parts)).hexdigest())
        return found

    def counting(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return select_top(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "top_each", recording)
        patch.setattr(row_operator, "select_top", counting)
        ((_, result),) = train_jobs(task, [Job(split, 0, config)])
    assert isinstance(result, RunResult)
    return result, digests, calls


def assert_reuse_changes_nothing(task: Task, split: Split, config: Any) -> None:
    """The same attention to the last bit in every step and evaluation of a training of two layers, and its result."""
    reused, attentions, calls = recorded_training(task, split, config, full=False)
    whole, expected, all_calls = recorded_training(task, split, config, full=True)
    assert attentions == expected
    assert len(set(expected)) > reused.epochs  # filters are learned: two layers, each with another attention per epoch
    assert all_calls == len(expected) >= 4 * whole.epochs
    assert calls <= reused.epochs + 3  # one pass per evaluation, and the first step
    assert reused.history == whole.history
    assert all((reused.state[name] == value).all() for name, value in whole.state.items())
