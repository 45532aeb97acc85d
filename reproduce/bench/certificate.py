"""The certificate's bounds compared with true errors, computed from all scores in double precision."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asgat.config import ASGATConfig
from asgat.data import Dataset, load_dataset
from asgat.nn.asgat import ASGAT
from asgat.nn.attention import attend
from asgat.spectral.certificate import certify_rows
from asgat.spectral.top_k import row_blocks
from asgat.tables import TableOperator
from asgat.tables.exact_builder import exact_rows
from asgat.training.loop import train
from asgat.training.runner import make_task
from reproduce.bench.epoch import published_config

_ROWS = 256


def bench_certificate(
    name: str, device: torch.device, progress: Callable[[str], None], data_dir: Path | None = None, epochs: int = 2000
) -> dict[str, Any]:
    """Trains filters on run 0 of a data set, then checks every row, layer and head."""
    data = load_dataset(name, data_dir=data_dir)
    config = published_config(name, epochs=epochs)
    progress(f"{name}: building the table and training")
    model, operator = train_filters(data, config, device)
    progress(f"{name}: computing all scores")
    settings = {key: getattr(config, key) for key in ("candidates", "cap", "order", "k")}
    errors = certificate_errors(model, operator)
    return {"dataset": name, "nodes": data.num_nodes, **errors, **settings, "dtype": config.storage}


def train_filters(data: Dataset, config: ASGATConfig, device: torch.device) -> tuple[ASGAT, TableOperator]:
    """A model of asgat-cheb trained on the first split with seed 0, and its operator."""
    task = make_task(data, "asgat-cheb", config, device)
    outcome = train(task.build, task.inputs, task.y, data.splits[0], config)
    model, operator = task.example(config).to(device), task.inputs[1]
    model.load_state_dict(outcome.state)
    assert isinstance(model, ASGAT)
    assert isinstance(operator, TableOperator)
    return model, operator


@torch.no_grad()
def certificate_errors(model: ASGAT, operator: TableOperator) -> dict[str, Any]:
    """Bounds and true errors over all layers; a violation is a row whose true error is above its bound."""
    errors, bounds, exact = [], [], []
    low, high = np.inf, -np.inf
    for conv in model.convs:
        assert conv.k is not None
        index, score = operator.top(conv.filter, conv.k)
        attention = attend(operator, conv.filter, conv.k, certified=True)
        assert attention.certificate is not None
        coefficients = operator.coefficients(conv.filter).cpu()
        layer = []
        for part in row_blocks(operator.num_nodes, 1, _ROWS):
            nodes = np.arange(part.start, part.stop)
            truth = torch.from_numpy(exact_rows(operator.shifted.matrix, operator.order, nodes))
            layer.append(certify_rows(coefficients, truth, index[:, part].cpu(), score[:, part].cpu()))
            scores = torch.tensordot(coefficients.double(), truth, dims=1)
            low, high = min(low, float(scores.min())), max(high, float(scores.max()))
        errors.append(torch.cat(layer, dim=1).flatten())
        bounds.append(attention.certificate.bound.cpu().flatten())
        exact.append(attention.certificate.exact.cpu().flatten())
    error, bound = torch.cat(errors), torch.cat(bounds)
    return {
        "candidates_per_node": operator.table.candidates_per_node,
        "certified_share": float(torch.cat(exact).double().mean()),
        "mean_bound": float(bound.mean()),
        "max_bound": float(bound.max()),
        "mean_error": float(error.mean()),
        "max_error": float(error.max()),
        "violations": int((error > bound).sum()),
        "score_range": [low, high],
    }
