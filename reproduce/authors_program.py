"""What the authors' program does differently from this package, each difference taken over alone or with others.

The settings are the published ones, without restarts. Their program was run with one seed on all splits, so that its
score is to be compared with the means of single seeds: ``per_seed``.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from asgat.config import ASGATConfig
from asgat.data import Dataset
from asgat.filters import MLPFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn.asgat import ASGAT
from asgat.nn.registry import make_config
from asgat.spectral import ChebyshevOperator, ExactOperator, SpectralOperator
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.spectral.top_k import top_k
from asgat.tables import TableOperator
from asgat.training.inputs import make_inputs
from asgat.training.loop import train
from asgat.training.run_state import DivergedError, RunResult, baseline_score
from reproduce.experiments.authors import program_settings

DIFFERENCES = {
    "bias": "a learned bias in every layer: not in that program, but our default",
    "hidden bias": "a learned bias in the hidden layer only",
    "output bias": "a learned bias in the last layer only",
    "weights": "W drawn as nn.Linear draws it, not by Xavier's rule",
    "filter": "filter weights drawn as nn.Linear draws them, and its input λ instead of λ - 1",
    "unreachable": "nodes of other components compete for the k places, with score 0",
    "lambda_max": "the largest eigenvalue by Lanczos times 1.01, instead of 2; Chebyshev only",
    "ties": "equal scores in the order that rounding to single precision leaves, not by index; exact only",
    "seeds": "other initial weights for every split, not the same ones for all splits of a seed",
}
ALIASES: dict[str, tuple[str, ...]] = {"ours": (), "program": ("weights", "filter", "unreachable", "lambda_max")}


class PlainFilter(MLPFilter):
    """The filter with PyTorch's own initial weights and the frequency as it is."""

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def _hidden(self, frequency: Tensor) -> Tensor:
        return super()._hidden(frequency + 1.0)


class RoundedOperator(ExactOperator):
    """Exact scores from a decomposition in single precision, whose rounding decides between equal ones."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        super().__init__(graph, device=device)
        value, vector = torch.linalg.eigh(torch.from_numpy(graph.laplacian.toarray()).float())
        self.eigenvalues, self.eigenvectors = value.to(device), vector.to(device)

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        _, score = self.scores(filter, include_unreachable=include_unreachable)
        index = score.detach().topk(k, dim=-1).indices
        return index, score.gather(-1, index)


class WithUnreachable(TableOperator):
    """A table to which every row's first k nodes of other components are added, with score 0."""

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        index, score = super().top(filter, k)
        if not include_unreachable:
            return index, score
        others, zero = (part.expand(len(score), -1, -1) for part in self.unreachable(k))
        index, score = torch.cat([index.long(), others], dim=-1), torch.cat([score, zero], dim=-1)
        position = top_k(score, k)
        return index.gather(-1, position), score.gather(-1, position)

    @cache  # noqa: B019
    def unreachable(self, k: int) -> tuple[Tensor, Tensor]:
        """For every row k nodes of other components and their scores, both [N, k]; -inf where there are fewer."""
        component = torch.from_numpy(self.graph.components).to(self.device)
        first = [(component != own).nonzero().flatten()[:k] for own in range(int(component.max()) + 1)]
        index = nn.utils.rnn.pad_sequence(first, batch_first=True, padding_value=-1)[component]
        return index.clamp(min=0), torch.where(index < 0, UNREACHABLE, 0.0).to(self.dtype)


def build(config: Any, dataset: Dataset, taken: tuple[str, ...]) -> nn.Module:
    kind = PlainFilter if "filter" in taken else MLPFilter
    net = ASGAT(
        dataset.num_features,
        config.hidden,
        dataset.num_classes,
        heads=config.heads,
        k=config.k,
        dropout=config.dropout,
        elu=config.elu,
        filter=partial(kind, hidden=config.filter_hidden, output_activation=config.filter_activation),
        include_unreachable="unreachable" in taken,
    )
    for conv, place in zip(net.convs, ("hidden bias", "output bias"), strict=True):
        if not {"bias", place} & {*taken}:
            conv.bias = None
        if "weights" in taken:
            bound = 1 / math.sqrt(conv.in_channels)
            nn.init.uniform_(conv.weight, -bound, bound)
    return net


def changed(operator: Any, config: ASGATConfig, taken: tuple[str, ...]) -> SpectralOperator:
    """The operator with what is taken over of unreachable nodes, of the largest eigenvalue and of ties."""
    if "ties" in taken and config.operator == "exact":
        return RoundedOperator(operator.graph, operator.device)
    graph, lanczos = operator.graph, "lambda_max" in taken and config.operator == "chebyshev"
    if lanczos and graph.lambda_max == 2.0:  # that of bipartite components, which the program increases, too
        vars(graph)["lambda_max"] = 2.02
    given: dict[str, Any] = {"lambda_max": "lanczos" if lanczos else "bound", "device": operator.device}
    if isinstance(operator, TableOperator) and (lanczos or "unreachable" in taken):
        kind = WithUnreachable if "unreachable" in taken else TableOperator
        return kind(graph, config.order, candidates=operator.candidates, cap=config.cap, **given)
    return ChebyshevOperator(graph, config.order, **given) if lanczos else operator


def measure(
    dataset: Dataset, model: str, what: str, seeds: int, device: torch.device, **changes: Any
) -> dict[str, Any]:
    """Test scores over seeds and runs with what is taken over, joined by "and"; runs that are lost or diverged.

    A run is lost if it is no better on validation than the majority class.
    """
    taken = tuple(own for part in what.split(" and ") for own in ALIASES.get(part, (part,)))
    config = make_config(model, **program_settings(dataset.name, model, **changes))
    assert isinstance(config, ASGATConfig)
    x, operator = make_inputs(dataset, model, config, device)
    inputs, y = (x, changed(operator, config, taken)), torch.from_numpy(dataset.y).to(device)
    make, one = partial(build, dataset=dataset, taken=taken), len(dataset.splits) == 1
    done, lost, diverged = [], 0, 0
    per_seed: list[list[float]] = [[] for _ in range(seeds)]
    for seed in range(seeds):
        for run in range(10):
            split, own = dataset.splits[0 if one else run], 10 * seed + run if one or "seeds" in taken else seed
            try:
                outcome = train(make, inputs, y, split, config, own, dataset.metric)
            except DivergedError:
                diverged += 1
                continue
            done.append(outcome)
            per_seed[seed].append(outcome.micro_f1)
            lost += outcome.val_score <= baseline_score(dataset.y, split, dataset.metric)
    return {**_figures(done), "per_seed": [float(np.mean(own)) for own in per_seed] if not diverged else None,
            "lost": lost, "runs": len(done), "diverged": diverged, "device": device.type}  # fmt: skip


def _figures(done: list[RunResult]) -> dict[str, Any]:
    test, val = (np.array([getattr(one, key) for one in done]) for key in ("micro_f1", "val_score"))
    figures = {"test": test.mean(), "test_std": test.std(), "val": val.mean(), "val_std": val.std()}
    return {**{key: float(value) for key, value in figures.items()}, "per_run": test.tolist()}
