"""Checks that a ``result.json`` has the structure that training writes, before its values are used."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError, shown

Kind = tuple[str, Callable[[Any], bool]]  # what a value must be, in words and as a test


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_optional(value: Any) -> bool:
    return value is None or _is_number(value)


def _has(value: Any, **entries: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(key in value and holds(value[key]) for key, holds in entries.items())


WHOLE: Kind = ("a whole number of at least 0", _is_whole)
NUMBER: Kind = ("a number", _is_number)
OPTIONAL: Kind = ("a number or null", _is_optional)
OBJECT: Kind = ("an object", _has)
BOOLEAN: Kind = ("true or false", lambda value: isinstance(value, bool))
OBJECTS: Kind = ("a list of objects", lambda value: isinstance(value, list) and all(map(_has, value)))
WHOLES: Kind = ("a list of whole numbers", lambda value: isinstance(value, list) and all(map(_is_whole, value)))
NAMES: Kind = ("a list of names", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))
SPREAD: Kind = ("an object with the numbers mean and std", partial(_has, mean=_is_optional, std=_is_optional))
FALLBACK: Kind = (
    "null or an object with heads, evaluations and residual",
    lambda v: v is None or _has(v, heads=_is_whole, evaluations=_is_whole, residual=_is_optional),
)

BOUNDS = ["certified_share", "mean_bound", "max_bound"]
RESULT = dict.fromkeys(["micro_f1", "macro_f1", "roc_auc"], SPREAD) | dict.fromkeys(["config", "versions"], OBJECT)
RESULT |= {"partners": NAMES, "runs": WHOLES, "finished": BOOLEAN, "restarts": WHOLE, "fallback": FALLBACK}
RESULT |= dict.fromkeys(["val_micro_f1", "val_roc_auc", "epochs", "ms_per_epoch", "peak_memory_mb", *BOUNDS], OPTIONAL)
ROW = dict.fromkeys(["run", "epochs", "best_epoch", "restarts"], WHOLE)
ROW |= dict.fromkeys(["val_score", "micro_f1", "macro_f1", "seconds", "peak_memory_mb"], NUMBER)
ROW |= {"val_loss": OPTIONAL}


def check_result(result: Any, path: Path) -> dict[str, Any]:
    """Returns the parsed content of a ``result.json`` if its entries are of the right kind.

    Raises:
        AsgatError: an entry is missing or wrong; the message names the file, the entry and its value.
    """
    if not isinstance(result, dict):
        raise AsgatError(f"{path} is damaged: it must hold an object. Train again with --fresh.")
    _check(result, {"rows": OBJECTS}, RESULT, path, "")
    rows, required = result["rows"], dict(ROW)
    if result.get("protocol") == "own":  # a user's own graph may have no test nodes, and then no test scores
        required |= {"micro_f1": OPTIONAL, "macro_f1": OPTIONAL}
    if any("max_bound" in row for row in rows):
        required |= dict.fromkeys(BOUNDS, NUMBER)
    for i, row in enumerate(rows):
        _check(row, required, {"roc_auc": OPTIONAL, "fallback": FALLBACK}, path, f"rows[{i}].")
    runs = [row["run"] for row in rows]
    if len(set(runs)) < len(runs):
        raise AsgatError(f"{path} is damaged: rows repeat a run ({shown(runs)}). Train again with --fresh.")
    return result


def _check(
    values: Mapping[str, Any], required: Mapping[str, Kind], optional: Mapping[str, Kind], path: Path, place: str
) -> None:
    for key, (words, holds) in {**optional, **required}.items():
        if holds(values[key]) if key in values else key not in required:
            continue
        found = shown(values[key]) if key in values else "missing"
        raise AsgatError(f"{path} is damaged: {place}{key} must be {words}, but is {found}. Train again with --fresh.")
