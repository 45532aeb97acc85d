"""The models by name: what each stands for, its settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from asgat.config import ASGATConfig, TrainConfig
from asgat.errors import AsgatError, suggest
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn.asgat import ASGAT
from asgat.nn.baselines import GCN, MLP
from asgat.spectral import ChebyshevOperator, ExactOperator, SpectralOperator, TableOperator
from asgat.spectral.candidates import Progress
from asgat.spectral.planner import check_plan


@dataclass(frozen=True)
class ModelSpec:
    """A model under its name.

    Attributes:
        summary: one line for people.
        config: its settings.
        build: settings, number of features and of classes → module.
        prepare: graph, settings, device and perhaps something to call with the rows done and in all → what the
            module's ``forward`` takes after x, made once per graph.
        fixed: settings the name stands for; they cannot be changed.
        defaults: settings that start from another value than ``config`` gives.
        sparse: whether its ``forward`` takes sparse features.
    """

    summary: str
    config: type[TrainConfig]
    build: Callable[[Any, int, int], nn.Module]
    prepare: Callable[..., tuple[Any, ...]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = False


def make_filter(config: ASGATConfig) -> Callable[[int], SpectralFilter]:
    """The filter a configuration names, still to be told its number of heads."""
    filters: dict[str, Callable[[int], SpectralFilter]] = {
        "mlp": partial(MLPFilter, hidden=config.filter_hidden, output_activation=config.filter_activation),
        "heat": partial(HeatFilter, scale=config.heat_scale, learned=config.heat_learned),
        "polynomial": partial(PolynomialFilter, degree=config.filter_degree),
    }
    return filters[config.filter]


def make_operator(
    graph: Graph,
    config: ASGATConfig,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> SpectralOperator:
    """The operator a configuration names, on a candidate table unless the graph is small or every pair is asked for.

    Refused, before anything large is allocated, where it would take more memory than is free.
    """
    form = check_plan(graph, config, device).form
    if form == "exact":
        return ExactOperator(graph, dtype=dtype, device=device)
    polynomial: dict[str, Any] = {
        "order": config.order,
        "sampling_points": config.sampling_points,
        "lambda_max": config.lambda_max,
        "damping": config.damping,
        "dtype": dtype,
        "device": device,
    }
    if form == "dense":
        return ChebyshevOperator(graph, **polynomial)
    return TableOperator(
        graph,
        **polynomial,
        candidates=max(config.candidates, config.k or 1),
        cap=config.cap,
        storage=getattr(torch, config.storage),
        builder="exact" if form == "exact table" else "truncated",
        progress=progress,
    )


def _build_asgat(config: ASGATConfig, in_channels: int, out_channels: int) -> nn.Module:
    return ASGAT(
        in_channels,
        config.hidden,
        out_channels,
        num_layers=config.layers,
        heads=config.heads,
        out_heads=config.out_heads,
        k=config.k,
        dropout=config.dropout,
        elu=config.elu,
        root=config.root,
        filter=make_filter(config),
        operator=partial(make_operator, config=config),
        include_unreachable=config.include_unreachable,
    )


def _build_plain(model: type[nn.Module], config: TrainConfig, in_channels: int, out_channels: int) -> nn.Module:
    return model(in_channels, config.hidden, out_channels, config.layers, config.dropout)


def _prepare_edges(graph: Graph, config: TrainConfig, device: torch.device, *_: Any) -> tuple[Any, ...]:
    weight = torch.from_numpy(graph.adjacency.tocoo().data).float()
    return torch.from_numpy(graph.edge_index()).to(device), weight.to(device)


def _asgat(summary: str, fixed: dict[str, Any], defaults: dict[str, Any] | None = None) -> ModelSpec:
    def prepare(
        graph: Graph, config: ASGATConfig, device: torch.device, progress: Progress | None = None
    ) -> tuple[Any, ...]:
        return (make_operator(graph, config, device, progress=progress),)

    return ModelSpec(summary, ASGATConfig, _build_asgat, prepare, fixed, defaults or {}, sparse=True)


MODELS: dict[str, ModelSpec] = {
    "asgat-cheb": _asgat(
        "the paper's model, scores by Chebyshev polynomials",
        {"operator": "chebyshev", "filter": "mlp", "root": False},
    ),
    "asgat-exact": _asgat(
        "the paper's model, scores by eigen-decomposition", {"operator": "exact", "filter": "mlp", "root": False}
    ),
    "asgat-heat": _asgat("the paper's model with a heat kernel", {"filter": "heat", "root": False}),
    "asgat-plus": _asgat("the paper's model with a root term", {}, {"root": True}),
    "mlp": ModelSpec("features alone", TrainConfig, partial(_build_plain, MLP), lambda *_: ()),
    "gcn": ModelSpec("graph convolutions", TrainConfig, partial(_build_plain, GCN), _prepare_edges),
}


def model_spec(name: str) -> ModelSpec:
    if name not in MODELS:
        raise AsgatError(f"Unknown model {name!r}. {suggest(name, list(MODELS))}")
    return MODELS[name]


def make_config(name: str, **values: Any) -> TrainConfig:
    """The settings of a model, from its defaults and the given values; unknown and fixed keys are named."""
    spec = model_spec(name)
    known = spec.config.keys()
    for key, value in values.items():
        if key not in known:
            raise AsgatError(f"{name} has no setting {key!r}. {suggest(key, known)}")
        if key in spec.fixed and value != spec.fixed[key]:
            raise AsgatError(
                f"{name} stands for {key} = {spec.fixed[key]}; it cannot be set to {value}. "
                "asgat-plus is the form with options."
            )
    return spec.config(**{**spec.defaults, **values, **spec.fixed})
