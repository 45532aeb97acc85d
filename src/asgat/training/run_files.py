"""The files of a run directory by name, and its result as it was written; needs no PyTorch."""

import json
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError, brief
from asgat.files.raw_file import RawFile
from asgat.files.user_file import MAX_FILE_BYTES
from asgat.training.result_check import check_result

CONFIG, METRICS, RESULT, MODEL = "config.toml", "metrics.jsonl", "result.json", "model.safetensors"
UNFINISHED = "unfinished.safetensors"
RUN_FILES = (CONFIG, RESULT, METRICS, MODEL, UNFINISHED)
BOARD = "leaderboard.json"  # next to them, where many models were trained


def read_result(folder: Path) -> dict[str, Any]:
    """What ``result.json`` holds; refused if it is damaged."""
    path = folder / RESULT
    content = RawFile.read(path, MAX_FILE_BYTES).content
    try:
        result = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AsgatError(f"{path} cannot be read as a result: {brief(error)}.") from error
    return check_result(result, path)
