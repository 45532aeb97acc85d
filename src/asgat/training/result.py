"""What is reported of runs: the row of one, and the result of all of them."""

import math
import platform
import resource
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from asgat.config import OPTIONS, TrainConfig
from asgat.data.dataset import Split
from asgat.nn.attention_model import AttentionModel
from asgat.spectral import SpectralOperator
from asgat.tables import TableOperator
from asgat.training.program import Task
from asgat.training.run_state import RunResult, State


def describe_settings(
    dataset: str, model: str, protocol: str, seed: int, runs: Sequence[int], config: TrainConfig, data: str
) -> dict[str, Any]:
    """What ``config.toml`` of a run directory holds; ``data`` is the digest of the data set."""
    return {
        "dataset": dataset,
        "model": model,
        "protocol": protocol,
        "seed": seed,
        "runs": list(runs),
        "data": data,
        "config": config.to_dict(),
    }


def result_row(run: int, figures: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """One run in ``result.json``: its scores, then memory."""
    return {"run": run, **figures, "peak_memory_mb": peak_memory_mb(device)}


def run_figures(task: Task, config: TrainConfig, split: Split, outcome: RunResult) -> dict[str, Any]:
    """Scores, certificates and fallbacks of a run that was trained by this process."""
    certified = certified_figures(task, config, split, outcome.state)
    return {**outcome.figures(), **certified, "fallback": fallback_figures(task.inputs)}


def certified_figures(task: Task, config: TrainConfig, split: Split, state: State) -> dict[str, Any]:
    """How far a trained model's attention can be from the paper's, over all layers, heads and nodes."""
    model = task.example(config).to(task.y.device)
    if not isinstance(model, AttentionModel) or not model.convs:
        return {}
    operator = task.inputs[1]
    if not isinstance(operator, TableOperator):  # it scores all pairs
        return {"certified_share": 1.0, "mean_bound": 0.0, "max_bound": 0.0}
    model.load_state_dict(state)
    certificates = model.certificates(operator)
    return {
        "certified_share": float(np.mean([c.share for c in certificates])),
        "mean_bound": float(np.mean([c.mean_bound for c in certificates])),
        "max_bound": max(c.max_bound for c in certificates),
    }


def fallback_figures(inputs: Sequence[Any]) -> dict[str, Any] | None:
    """What a run had to replace by Chebyshev polynomials: the most heads at a time, how often, the largest residual."""
    taken = [part.take_fallback() for part in inputs if isinstance(part, SpectralOperator)]
    return _merge_fallbacks([vars(found) for found in taken if found is not None])


def _merge_fallbacks(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Several fallbacks as one; a residual that is not finite is None and larger than all others."""
    if not rows:
        return None
    residuals = [row["residual"] for row in rows]
    return {
        "form": "chebyshev",
        "heads": max(row["heads"] for row in rows),
        "evaluations": sum(row["evaluations"] for row in rows),
        "residual": max(residuals) if all(r is not None and math.isfinite(r) for r in residuals) else None,
    }


def summarise(settings: dict[str, Any], metric: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of all finished runs; scores are fractions, ``std`` is that of the population of runs."""
    rows = sorted(rows, key=lambda row: row["run"])
    epochs = sum(row["epochs"] for row in rows)
    config = settings["config"]
    attends = any("max_bound" in row for row in rows)
    validation = _mean([row["val_score"] for row in rows])
    result = {
        **settings,
        "finished": len(rows) == len(settings["runs"]),
        "micro_f1": _spread([row["micro_f1"] for row in rows]),
        "macro_f1": _spread([row["macro_f1"] for row in rows]),
        "val_micro_f1": validation if metric == "micro_f1" else None,
        "epochs": epochs / len(rows) if rows else None,
        "ms_per_epoch": 1000 * sum(row["seconds"] for row in rows) / epochs if epochs else None,
        "peak_memory_mb": max((row["peak_memory_mb"] for row in rows), default=None),
        "certified_share": _mean([row["certified_share"] for row in rows]) if attends else None,
        "mean_bound": _mean([row["mean_bound"] for row in rows]) if attends else None,
        "max_bound": max((row["max_bound"] for row in rows), default=None) if attends else None,
        "options": {key: config[key] for key in OPTIONS if config.get(key)},
        "fallback": _merge_fallbacks([row["fallback"] for row in rows if row.get("fallback")]),
        "restarts": sum(row["restarts"] for row in rows),
        "versions": versions(),
        "rows": rows,
    }
    if metric == "roc_auc":
        result["roc_auc"] = _spread([row["roc_auc"] for row in rows])
    if metric != "micro_f1":
        result[f"val_{metric}"] = validation
    return result


def versions() -> dict[str, str]:
    from importlib.metadata import version

    from asgat import __version__

    return {
        "asgat": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": version("torch_geometric"),
        "numpy": np.__version__,
    }


def peak_memory_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if platform.system() == "Darwin" else peak / 2**10


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": _mean(values), "std": float(np.std(values)) if values else None, "per_run": values}
