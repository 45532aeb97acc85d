"""How ASGAT's filter, operator and model are built from settings."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from asgat.config import ASGATDeepConfig, SpectralConfig
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn.asgat import ASGAT
from asgat.nn.attention_model import AttentionModel
from asgat.nn.deep import ASGATDeep
from asgat.nn.ensemble import Ensemble
from asgat.nn.memory_plan import check_plan, table_settings
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator, SpectralOperator
from asgat.tables import ArmaTableOperator, TableOperator
from asgat.tables.candidate_table import Progress
from asgat.tables.table_cache import TableCache


def make_filter(config: SpectralConfig) -> Callable[[int], SpectralFilter]:
    """The filter a configuration names, as a function of the number of heads."""
    if config.filter == "heat":
        return partial(HeatFilter, scale=config.heat_scale)
    if config.filter == "polynomial":
        return PolynomialFilter
    if config.filter == "mlp":
        hidden, activation = config.filter_hidden, config.filter_activation
        return partial(MLPFilter, hidden=hidden, output_activation=activation)
    raise AssertionError(f"make_filter does not know the filter {config.filter!r}")


def make_operator(
    graph: Graph,
    config: SpectralConfig,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> SpectralOperator:
    """The operator a configuration names, on a candidate table unless the graph is small or every pair is needed.

    That of a directed graph is of its double cover.

    Raises:
        AsgatError: it would take more memory than is available; raised before anything large is allocated.
    """
    graph = graph.spectral_graph
    form = check_plan(graph, config, device).form
    where: dict[str, Any] = {"dtype": dtype, "device": device}
    arma: dict[str, Any] = {"fit_error": config.fit_error} if config.operator == "arma" else {}
    if form == "exact":
        return ExactOperator(graph, **where)
    if form == "matrix":  # nothing is scored
        return ChebyshevOperator(graph, config.order, cache_bytes=0, **where)
    if form == "dense":
        return ArmaOperator(graph, **arma, **where) if arma else ChebyshevOperator(graph, config.order, **where)
    settings = table_settings(graph.num_nodes, config, form)
    return (ArmaTableOperator if arma else TableOperator)(
        graph,
        config.order,
        candidates=settings.candidates,
        cap=settings.cap,
        storage=settings.dtype,
        builder=settings.builder,
        neighbourhood=settings.neighbourhood,
        progress=progress,
        caches=[TableCache()],
        **arma,
        **where,
    )


def build_model(
    config: SpectralConfig, in_channels: int, out_channels: int, num_nodes: int | None = None, **options: bool
) -> AttentionModel:
    """ASGAT, or its deep form where the settings are those of it; of several ``members`` an ensemble.

    ``options`` are arguments of the model that are no settings: ``directed``, and ``linear`` of ASGAT.
    """
    model: Callable[..., AttentionModel] = ASGAT
    names = ["heads", "k", "dropout"]
    if isinstance(config, ASGATDeepConfig):
        model = ASGATDeep
        names += ["input_dropout", "channels"]
    else:
        names += ["out_heads", "elu", "bias", "root", "mix", "gain", "jump", "propagate", "alpha"]
    own = {name: getattr(config, name) for name in names}
    own |= {"num_layers": config.layers, "num_nodes": num_nodes}
    own |= {"filter": make_filter(config), "operator": partial(make_operator, config=config)}
    members = [model(in_channels, config.hidden, out_channels, **own, **options) for _ in range(config.members)]
    return members[0] if len(members) == 1 else Ensemble(members)
