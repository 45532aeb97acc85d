"""Checks that a ``result.json`` has the structure that training writes, before its values are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from asgat.errors import AsgatError, shown


class Kind(NamedTuple):
    """What a value must be, as a test and in words."""

    holds: Callable[[Any], bool]
    words: str


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _optional(value: Any) -> bool:
    return value is None or _number(value)


def _list_of(value: Any, kind: Kind) -> bool:
    return isinstance(value, list) and all(map(kind.holds, value))


def _spread(value: Any) -> bool:
    return isinstance(value, dict) and all(_optional(value.get(key, "missing")) for key in ("mean", "std"))


def _fallback(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(_whole(value.get(key)) for key in ("heads", "evaluations"))
        and _optional(value.get("residual", "missing"))
    )


WHOLE = Kind(_whole, "a whole number of at least 0")
NUMBER = Kind(_number, "a number")
OPTIONAL = Kind(_optional, "a number or null")
SPREAD = Kind(_spread, "an object with the numbers mean and std")
FALLBACK = Kind(_fallback, "null or an object with heads, evaluations and residual")
OBJECT = Kind(lambda value: isinstance(value, dict), "an object")
BOOLEAN = Kind(lambda value: isinstance(value, bool), "true or false")
OBJECTS = Kind(lambda value: _list_of(value, OBJECT), "a list of objects")
WHOLES = Kind(lambda value: _list_of(value, WHOLE), "a list of whole numbers")

RESULT = dict.fromkeys(["micro_f1", "macro_f1", "roc_auc"], SPREAD) | dict.fromkeys(["config", "versions"], OBJECT)
RESULT |= {"runs": WHOLES, "finished": BOOLEAN, "restarts": WHOLE, "fallback": FALLBACK}
RESULT |= dict.fromkeys(["val_micro_f1", "val_roc_auc", "epochs", "ms_per_epoch", "peak_memory_mb"], OPTIONAL)
BOUNDS = ["certified_share", "mean_bound", "max_bound"]
ROW = dict.fromkeys(["run", "epochs", "best_epoch", "restarts"], WHOLE) | {"val_loss": OPTIONAL, "val_score": NUMBER}
ROW |= dict.fromkeys(["seconds", "peak_memory_mb"], NUMBER)
TEST_SCORES = ["micro_f1", "macro_f1"]


def check_result(result: Any, path: Path) -> dict[str, Any]:
    """Returns the result if its entries are of the right kind.

    Args:
        result: the parsed content of ``result.json``.
        path: the file, for the message.

    Raises:
        AsgatError: an entry is missing or wrong; the message names it and its value.
    """
    if not isinstance(result, dict):
        raise AsgatError(f"{path} is damaged: it must hold an object. Train again with --fresh.")
    _check(result, {"rows": OBJECTS}, path, "")
    _check(result, {key: kind for key, kind in RESULT.items() if key in result}, path, "")
    _check(result, {key: OPTIONAL for key in BOUNDS if key in result}, path, "")
    rows = result["rows"]
    # A user's own graph may have no test nodes, and then no test scores.
    score = OPTIONAL if result.get("protocol") == "own" else NUMBER
    kinds = {**ROW, **dict.fromkeys(TEST_SCORES, score)}
    kinds |= dict.fromkeys(BOUNDS, NUMBER) if any("max_bound" in row for row in rows) else {}
    for i, row in enumerate(rows):
        _check(row, kinds, path, f"rows[{i}].")
        optional = {"roc_auc": OPTIONAL, "fallback": FALLBACK}
        _check(row, {key: kind for key, kind in optional.items() if key in row}, path, f"rows[{i}].")
    runs = [row["run"] for row in rows]
    if len(set(runs)) < len(runs):
        raise AsgatError(f"{path} is damaged: rows repeat a run ({shown(runs)}). Train again with --fresh.")
    return result


def _check(values: Mapping[str, Any], kinds: Mapping[str, Kind], path: Path, place: str) -> None:
    for key, kind in kinds.items():
        found = shown(values[key]) if key in values else "missing"
        if key not in values or not kind.holds(values[key]):
            raise AsgatError(f"{path} is damaged: {place}{key} must be {kind.words}, but is {found}. "
                             "Train again with --fresh.")  # fmt: skip
