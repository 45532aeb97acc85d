"""The certificate against the truth: bounds beside errors computed from all scores in double precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asgat.bench.settings import published_config
from asgat.data import load_dataset
from asgat.nn.asgat import ASGAT
from asgat.nn.attention import attend
from asgat.nn.registry import model_spec
from asgat.spectral.certificate import certify_rows
from asgat.tables import TableOperator
from asgat.tables.exact_builder import exact_rows
from asgat.training.runner import make_inputs
from asgat.training.trainer import train

_ROWS = 256


def bench_certificate(
    names: list[str],
    device: torch.device,
    data_dir: Path | None = None,
    epochs: int = 2000,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """A row per data set: filters trained to early stopping on run 0, then every row, layer and head judged."""
    rows = []
    say = progress or (lambda _: None)
    for name in names:
        data = load_dataset(name, data_dir=data_dir)
        config = published_config(name, epochs=epochs)
        say(f"{name}: building the table")
        inputs = make_inputs(data, "asgat-cheb", config, device)
        operator = inputs[1]
        assert isinstance(operator, TableOperator)

        build = partial(model_spec("asgat-cheb").build, config, data.num_features, data.num_classes)
        say(f"{name}: training")
        y = torch.from_numpy(data.y).to(device)
        outcome = train(build, inputs, y, data.splits[0], config, 0)
        model = build().to(device)
        model.load_state_dict(outcome.state)
        assert isinstance(model, ASGAT)
        say(f"{name}: computing all scores")
        settings = {key: getattr(config, key) for key in ("candidates", "cap", "order", "k")}
        figures = judge(model, operator)
        rows.append({"dataset": name, "nodes": data.num_nodes, **figures, **settings, "dtype": config.storage})
    return rows


@torch.no_grad()
def judge(model: ASGAT, operator: TableOperator) -> dict[str, Any]:
    """Certificates of all layers against true errors; a violation is a row whose true error is above its bound."""
    table = operator.table
    errors, bounds, exact = [], [], []
    low, high = np.inf, -np.inf
    for conv in model.convs:
        assert conv.k is not None
        index, score = operator.top(conv.filter, conv.k)
        attention = attend(operator, conv.filter, conv.k, certified=True)
        assert attention.certificate is not None
        coefficients = operator.coefficients(conv.filter).cpu()
        layer = []
        for start in range(0, operator.num_nodes, _ROWS):
            nodes = np.arange(start, min(start + _ROWS, operator.num_nodes))
            truth = torch.from_numpy(exact_rows(operator.shifted.matrix, operator.order, nodes))
            part = slice(start, start + len(nodes))
            layer.append(certify_rows(coefficients, truth, index[:, part].cpu(), score[:, part].cpu()))
            scores = torch.tensordot(coefficients.double(), truth, dims=1)
            low, high = min(low, float(scores.min())), max(high, float(scores.max()))
        errors.append(torch.cat(layer, dim=1).flatten())
        bounds.append(attention.certificate.bound.cpu().flatten())
        exact.append(attention.certificate.exact.cpu().flatten())
    error, bound = torch.cat(errors), torch.cat(bounds)
    return {
        "candidates_per_node": table.candidates_per_node,
        "certified_share": float(torch.cat(exact).double().mean()),
        "mean_bound": float(bound.mean()),
        "max_bound": float(bound.max()),
        "mean_error": float(error.mean()),
        "max_error": float(error.max()),
        "violations": int((error > bound).sum()),
        "score_range": [low, high],
    }
