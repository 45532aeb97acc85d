"""One model over all runs of a data set: ten splits, or ten seeds where there is one split."""

from __future__ import annotations

import math
import platform
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from asgat.config import OPTIONS, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.files.lock import locked
from asgat.nn.asgat import ASGAT
from asgat.nn.registry import ModelSpec, model_spec
from asgat.spectral import SpectralOperator
from asgat.tables import TableOperator
from asgat.tables.candidate_table import Progress
from asgat.training.inputs import make_features as make_features
from asgat.training.inputs import make_inputs as make_inputs
from asgat.training.inputs import normalise_rows as normalise_rows
from asgat.training.inputs import prepare_graph as prepare_graph
from asgat.training.memory import keep_freed_memory
from asgat.training.run_directory import RunDirectory
from asgat.training.trainer import Epoch, RunResult, evaluate, train_run
from asgat.training.unfinished import Keeper

RunProgress = Callable[[int, Epoch], None]
Together = Callable[..., Iterator[tuple[int, RunResult]]]
Finished = Callable[[int, dict[str, torch.Tensor], tuple[Any, ...]], None]


def run(
    dataset: Dataset,
    model: str,
    config: TrainConfig,
    runs: Sequence[int] = range(10),
    seed: int = 0,
    device: torch.device | str = "cpu",
    out: Path | str | None = None,
    fresh: bool = False,
    progress: RunProgress | None = None,
    building: Progress | None = None,
    finished: Finished | None = None,
    waiting: Callable[[], None] | None = None,
    together: Together | None = None,
) -> dict[str, Any]:
    """Trains a model on the given runs of a data set and returns the result as in ``result.json``.

    Run i is split i with seed ``seed``, or, where the data set has a single split, that split with seed ``seed + i``.

    Args:
        dataset: the data.
        model: its name in the registry.
        config: its settings.
        runs: which runs.
        seed: of the first run.
        device: where to train.
        out: run directory; finished runs found there are taken over.
        fresh: forget what the run directory holds.
        progress: called with the run and every epoch.
        building: called with the rows done and in all while a table is built.
        finished: called with a run, its weights and the model's inputs, before the run counts as done: a run that
            counts has been handed over.
        waiting: called before waiting for another process that writes the run directory; without it, that is refused.
        together: trains all runs as one, :func:`~asgat.training.batched.together`; else one after the other.

    Raises:
        LockedError: another process writes the run directory.
    """
    model_spec(model)  # what is refused is so before anything is written
    for i in runs:
        run_split(dataset, i)
    with ExitStack() as held:
        if out is not None:
            held.enter_context(locked(out, wait=waiting is not None, waiting=waiting))
        return _run(dataset, model, config, runs, seed, device, out, fresh, progress, building, finished, together)


def _run(
    dataset: Dataset,
    model: str,
    config: TrainConfig,
    runs: Sequence[int],
    seed: int,
    device: torch.device | str,
    out: Path | str | None,
    fresh: bool,
    progress: RunProgress | None,
    building: Progress | None,
    finished: Finished | None,
    together: Together | None,
) -> dict[str, Any]:
    device = torch.device(device)
    spec = model_spec(model)
    splits = {i: run_split(dataset, i) for i in runs}
    settings = {
        "dataset": dataset.name,
        "model": model,
        "protocol": dataset.protocol,
        "seed": seed,
        "runs": list(runs),
        "config": config.to_dict(),
    }
    directory = RunDirectory(out) if out is not None else None
    done = directory.begin(settings, fresh) if directory else []
    result = summarise(settings, dataset, done)
    missing = [i for i in runs if i not in {row["run"] for row in done}]
    if not missing:
        if out is not None:
            Keeper(out, 0).remove()  # of a process killed between its last two steps
        return result
    y = torch.from_numpy(dataset.y).to(device)
    inputs = make_inputs(dataset, model, config, device, building)
    keep_freed_memory()  # from here on: what building a table took is given back
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seeds = {i: seed if len(dataset.splits) > 1 else seed + i for i in runs}
    outcomes: Iterator[tuple[int, RunResult]]
    if together:
        outcomes = together(dataset, spec, config, inputs, y, splits, seeds)
    else:
        outcomes = _one_by_one(dataset, spec, config, inputs, y, splits, seeds, missing, out, progress)
    for i, outcome in outcomes:
        if i not in missing:  # all of them are trained together again, so that the rest come out the same
            continue
        row = {"run": i, **{k: v for k, v in vars(outcome).items() if k not in ("history", "state")}}
        row.update(certified_figures(spec, config, dataset, inputs, y, splits[i], outcome.state))
        row["fallback"] = fallback_figures(inputs)
        row["peak_memory_mb"] = peak_memory_mb(device)
        if finished:
            finished(i, outcome.state, inputs)
        best_so_far = max((r["val_score"] for r in done), default=-1.0)
        if directory:
            directory.add_metrics([{"run": i, **vars(e)} for e in outcome.history], [r["run"] for r in done])
            if outcome.val_score > best_so_far:
                shape = {"in_channels": dataset.num_features, "out_channels": dataset.num_classes}
                directory.write_model(outcome.state, {**settings, "run": i, **shape, "num_nodes": dataset.num_nodes})
        done.append(row)
        result = summarise(settings, dataset, done)
        if directory:
            directory.write_result(result)
    return result


def _one_by_one(
    dataset: Dataset,
    spec: ModelSpec,
    config: TrainConfig,
    inputs: tuple[Any, ...],
    y: torch.Tensor,
    splits: dict[int, Split],
    seeds: dict[int, int],
    missing: Sequence[int],
    out: Path | str | None,
    progress: RunProgress | None,
) -> Iterator[tuple[int, RunResult]]:
    """Runs and what they came to; what is kept of an unfinished one goes when the next is asked for."""

    def build(own: TrainConfig) -> nn.Module:
        return spec.make(own, dataset.num_features, dataset.num_classes, dataset.num_nodes)

    for i in missing:
        tell = partial(progress, i) if progress else None
        keeper = Keeper(out, i, resumable=resumable(inputs)) if out is not None else None
        outcome = train_run(build, inputs, y, splits[i], config, seeds[i], dataset.metric, tell, keeper)
        yield i, outcome
        if keeper:
            keeper.remove()


def resumable(inputs: Sequence[Any]) -> bool:
    """Whether a run can go on from the middle: a rational form remembers what it met since the start."""
    return not any(getattr(part, "records_fallbacks", False) for part in inputs)


def run_split(dataset: Dataset, i: int) -> Split:
    """The split of run i; refused where it is missing or could not be judged."""
    several = len(dataset.splits) > 1
    if i < 0 or (several and i >= len(dataset.splits)):
        raise AsgatError(f"{dataset.name} has splits 0 to {len(dataset.splits) - 1}; there is no split {i}.")
    split = dataset.splits[i if several else 0]
    test = dataset.y[split.test]
    if not len(test):
        raise AsgatError(f"Split {i} of {dataset.name} has no test nodes; there would be nothing to report.")
    if dataset.metric == "roc_auc" and len(np.unique(test)) < 2:
        raise AsgatError(f"The test nodes of split {i} of {dataset.name} are of one class; use micro_f1.")
    return split


def certified_figures(
    spec: ModelSpec,
    config: TrainConfig,
    dataset: Dataset,
    inputs: tuple[Any, ...],
    y: torch.Tensor,
    split: Split,
    state: dict[str, torch.Tensor],
) -> dict[str, Any]:
    """How far a trained model's attention can be from the paper's, over all layers, heads and nodes.

    With a ``tolerance`` the rows over it are given more candidates until none is left, and the model is judged anew.
    """
    model = spec.make(config, dataset.num_features, dataset.num_classes, dataset.num_nodes).to(y.device)
    if not isinstance(model, ASGAT):
        return {}
    operator = inputs[1]
    if not isinstance(operator, TableOperator):  # it scores all pairs
        return {"certified_share": 1.0, "mean_bound": 0.0, "max_bound": 0.0}
    model.load_state_dict(state)
    certificates = model.certificates(operator)
    tolerance = getattr(config, "tolerance", None)
    figures: dict[str, Any] = {}
    if tolerance is not None:
        while max(c.max_bound for c in certificates) > tolerance and not bool(operator.table.complete.all()):
            over = torch.stack([(c.bound > tolerance).any(dim=0) for c in certificates]).any(dim=0)
            rows = (over & ~operator.table.complete).nonzero().squeeze(1)
            if not rows.numel():  # what is left over it is rounding
                break
            operator = operator.widened(rows)
            certificates = model.certificates(operator)
        figures = evaluate(model, (inputs[0], operator), y, split, dataset.metric)
    return {
        **figures,
        "certified_share": float(np.mean([c.share for c in certificates])),
        "mean_bound": float(np.mean([c.mean_bound for c in certificates])),
        "max_bound": max(c.max_bound for c in certificates),
    }


def fallback_figures(inputs: Sequence[Any]) -> dict[str, Any] | None:
    """What a run had to replace by Chebyshev polynomials: the most heads at a time, how often, the largest residual."""
    taken = [part.take_fallback() for part in inputs if isinstance(part, SpectralOperator)]
    rows = [
        {
            "heads": found.heads,
            "evaluations": found.evaluations,
            "residual": found.residual if math.isfinite(found.residual) else None,
        }
        for found in taken
        if found is not None
    ]
    return _fallback(rows)


def _fallback(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Several of them as one; a residual that is no number is None and larger than all others."""
    if not rows:
        return None
    residuals = [row["residual"] for row in rows]
    return {
        "form": "chebyshev",
        "heads": max(row["heads"] for row in rows),
        "evaluations": sum(row["evaluations"] for row in rows),
        "residual": None if None in residuals else max(residuals),
    }


def summarise(settings: dict[str, Any], dataset: Dataset, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of all finished runs; scores are fractions, ``std`` is that of the population of runs."""
    rows = sorted(rows, key=lambda row: row["run"])
    epochs = sum(row["epochs"] for row in rows)
    config = settings["config"]
    attends = any("max_bound" in row for row in rows)
    result = {
        **settings,
        "finished": len(rows) == len(settings["runs"]),
        "micro_f1": _spread([row["micro_f1"] for row in rows]),
        "macro_f1": _spread([row["macro_f1"] for row in rows]),
        "val_micro_f1": _mean([row["val_score"] for row in rows]) if dataset.metric == "micro_f1" else None,
        "epochs": epochs / len(rows) if rows else None,
        "ms_per_epoch": 1000 * sum(row["seconds"] for row in rows) / epochs if epochs else None,
        "peak_memory_mb": max((row["peak_memory_mb"] for row in rows), default=None),
        "certified_share": _mean([row["certified_share"] for row in rows]) if attends else None,
        "mean_bound": _mean([row["mean_bound"] for row in rows]) if attends else None,
        "max_bound": max((row["max_bound"] for row in rows), default=None) if attends else None,
        "options": {key: config[key] for key in OPTIONS if config.get(key)},
        "fallback": _fallback([row["fallback"] for row in rows if row.get("fallback")]),
        "restarts": sum(row["restarts"] for row in rows),
        "versions": versions(),
        "rows": rows,
    }
    if dataset.metric == "roc_auc":
        result["roc_auc"] = _spread([row["roc_auc"] for row in rows])
        result["val_roc_auc"] = _mean([row["val_score"] for row in rows])
    return result


def versions() -> dict[str, str]:
    import torch_geometric

    from asgat import __version__

    return {
        "asgat": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
    }


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": _mean(values), "std": float(np.std(values)) if values else None, "per_run": values}


def peak_memory_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if platform.system() == "Darwin" else peak / 2**10
