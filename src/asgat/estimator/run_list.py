"""The run directories below a folder: their data, model, score and date, without loading a model."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError, brief
from asgat.files.atomic import read_toml
from asgat.files.lock import LOCK_FILE
from asgat.files.user_file import read_user_file
from asgat.training.run_files import BOARD, CONFIG, MODEL, RESULT, RUN_FILES, read_result

SIGNS = {*RUN_FILES, BOARD, LOCK_FILE}  # a run directory has two of these files or more


@dataclass(frozen=True)
class RunSummary:
    """What a run directory holds.

    Attributes:
        date: when its result, or what else there is of it, was written.
        metric: of the score, such as ``micro_f1``.
        score: on test nodes, mean over the runs; None if there is none yet, or there are no test nodes.
        std: of the score over the runs; None for a single one.
        done, total: runs that are finished, of how many.
        finished: whether nothing is left to train.
        problem: why it is damaged, in a sentence; empty if it is not.
    """

    path: Path
    date: datetime
    dataset: str | None = None
    model: str | None = None
    metric: str | None = None
    score: float | None = None
    std: float | None = None
    done: int = 0
    total: int | None = None
    finished: bool = False
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path), "date": self.date.isoformat(timespec="seconds")}


def list_runs(folder: Path) -> list[RunSummary]:
    """The run directories in a folder and below it, the latest first."""
    if not folder.is_dir():
        raise AsgatError(f"{folder} is not a folder; name one that holds run directories.")
    return sorted(map(summarise_run, find_runs(folder)), key=lambda run: (run.date, str(run.path)), reverse=True)


def find_runs(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        if len(SIGNS.intersection(files)) >= 2 and {CONFIG, RESULT, BOARD}.intersection(files):
            folders.clear()  # those in a run directory are its own
            yield Path(path)


def summarise_run(path: Path) -> RunSummary:
    """What is known of a run directory; a damaged one is reported, not raised."""
    file = next(path / name for name in (RESULT, BOARD, CONFIG) if (path / name).exists())
    date = datetime.fromtimestamp(file.stat().st_mtime)
    try:
        return RunSummary(path, date, **_read(path))
    except AsgatError as error:
        return RunSummary(path, date, problem=str(error))
    except (KeyError, TypeError, ValueError) as error:
        return RunSummary(path, date, problem=f"{file} is damaged: {brief(repr(error))}. Train again with --fresh.")


def _read(path: Path) -> dict[str, Any]:
    if (path / RESULT).exists():
        result = read_result(path)
        if result["rows"] and not (path / MODEL).exists():
            raise AsgatError(f"{path / MODEL} is missing. Train again with --fresh.")
        rows, runs = len(result["rows"]), result["runs"]
        more = len(result.get("partners", []))
        model = f"{result['model']} and {more} more" if more else str(result["model"])
        about = {"dataset": str(result["dataset"]), "model": model, "finished": result["finished"]}
        return {**about, **_score(result), "done": rows, "total": len(runs)}
    if (path / CONFIG).exists():
        settings = read_toml(path / CONFIG)
        total = len(settings["runs"]) if "runs" in settings else None
        return {"dataset": str(settings["dataset"]), "model": str(settings["model"]), "total": total}
    held = read_user_file(path / BOARD).json_object()  # refuses a damaged one
    return {"model": "leaderboard", "dataset": str(held["dataset"]) if "dataset" in held else None}


def _score(result: dict[str, Any]) -> dict[str, Any]:
    """The score that validation decided by, for a user's graph; that of the data set otherwise."""
    if "test" in result:
        test = result["test"]
        return {"metric": str(test["metric"]), "score": float(test["scores"][test["metric"]])} if test else {}
    metric = "roc_auc" if "roc_auc" in result else "micro_f1"
    spread = result[metric]
    return {"metric": metric, "score": spread["mean"], "std": spread["std"] if len(result["rows"]) > 1 else None}
