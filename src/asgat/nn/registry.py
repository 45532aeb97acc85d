"""The models by name: what each stands for, its settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from asgat.config import (
    OPTIONS,
    APPNPConfig,
    ARMANetConfig,
    ASGATConfig,
    ChebNetConfig,
    GATConfig,
    GeomGCNConfig,
    GPRGNNConfig,
    SGCConfig,
    TrainConfig,
)
from asgat.errors import AsgatError, shown, suggest
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter, SpectralFilter
from asgat.geometry.relations import Reader, find_relations
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_linear import ASGATLinear
from asgat.nn.baselines import APPNP, GAT, GCN, GPRGNN, H2GCN, LINKX, MLP, SAGE, SGC, ARMANet, ChebNet, GeomGCN
from asgat.nn.baselines.geom_gcn import virtual_nodes
from asgat.nn.ensemble import Ensemble
from asgat.nn.memory_plan import check_plan
from asgat.spectral import (
    ArmaOperator,
    ArmaTableOperator,
    ChebyshevOperator,
    ExactOperator,
    SpectralOperator,
    TableOperator,
)
from asgat.tables.candidate_table import Progress


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
        reference: who proposed it, where and when.
        cost: of one layer; ``COST_LETTERS`` explains the letters.
        per_node: whether its weights belong to the nodes of one graph, whatever its settings; ``build`` then takes
            their number too. :meth:`belongs_to_graph` asks the settings as well.
        published: whether ``prepare`` takes the relations published with a data set as well.
    """

    summary: str
    config: type[TrainConfig]
    build: Callable[..., nn.Module]
    prepare: Callable[..., tuple[Any, ...]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = False
    reference: str = ""
    cost: str = ""
    per_node: bool = False
    published: bool = False

    def make(self, config: TrainConfig, in_channels: int, out_channels: int, num_nodes: int) -> nn.Module:
        """The module for a data set of this size."""
        return self.build(config, in_channels, out_channels, *([num_nodes] if self.belongs_to_graph(config) else []))

    def belongs_to_graph(self, config: TrainConfig) -> bool:
        """Whether a model with these settings has weights for the nodes of one graph, and can run on no other."""
        return self.per_node or bool(getattr(config, "adjacency", False))


COST_LETTERS = (
    "N nodes, E edges, T pairs within two hops, F and H features before and after a layer, K steps or degree, "
    "m heads or stacks; ASGAT: P pairs scored, R degree, k nodes attended to"
)


def make_filter(config: ASGATConfig) -> Callable[[int], SpectralFilter]:
    """The filter a configuration names, still to be told its number of heads."""
    filters: dict[str, Callable[[int], SpectralFilter]] = {
        "mlp": partial(
            MLPFilter,
            hidden=config.filter_hidden,
            output_activation=config.filter_activation,
            exact_bias=config.exact_sums,
        ),
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
    if config.exact_sums and "table" not in form:
        raise AsgatError(f"exact_sums needs a table, and this is the {form} form; set form=table.")
    if form == "exact":
        return ExactOperator(graph, dtype=dtype, device=device)
    arma = config.operator == "arma"
    shared: dict[str, Any] = {"lambda_max": config.lambda_max, "dtype": dtype, "device": device}
    if arma:
        shared |= {
            "numerator": config.numerator,
            "denominator": config.denominator,
            "fit_error": config.fit_error,
        }
        if form == "dense":
            return ArmaOperator(graph, steps=config.steps, tolerance=config.arma_tolerance, **shared)
    else:
        shared["damping"] = config.damping
    shared |= {"order": config.order, "sampling_points": config.sampling_points}
    if form == "dense":
        return ChebyshevOperator(graph, **shared)
    table = ArmaTableOperator if arma else TableOperator
    operator: SpectralOperator = table(
        graph,
        **shared,
        candidates=max(config.candidates, config.k or 1),
        cap=config.cap,
        storage=getattr(torch, config.storage),
        builder="exact" if form == "exact table" else "truncated",
        progress=progress,
    )
    operator.exact_sums = config.exact_sums
    return operator


def _build_asgat(
    config: ASGATConfig,
    in_channels: int,
    out_channels: int,
    num_nodes: int | None = None,
    model: type[ASGAT] = ASGAT,
) -> ASGAT:
    if config.members > 1:
        one = config.replace(members=1)
        return Ensemble([_build_asgat(one, in_channels, out_channels, num_nodes, model) for _ in range(config.members)])
    return model(
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
        mix=config.mix,
        gain=config.gain,
        jump=config.jump,
        propagate=config.propagate,
        alpha=config.alpha,
        num_nodes=num_nodes,
        filter=make_filter(config),
        operator=partial(make_operator, config=config),
        include_unreachable=config.include_unreachable,
    )


def _build_baseline(model: Any, config: TrainConfig, in_channels: int, out_channels: int) -> nn.Module:
    shared = TrainConfig.keys()
    own = {key: value for key, value in vars(config).items() if key not in shared}
    net: nn.Module = model(in_channels, config.hidden, out_channels, config.layers, config.dropout, **own)
    return net


def _build_sgc(config: SGCConfig, in_channels: int, out_channels: int) -> nn.Module:
    return SGC(in_channels, out_channels, config.steps, config.dropout)


def _build_linkx(config: TrainConfig, in_channels: int, out_channels: int, num_nodes: int) -> nn.Module:
    return LINKX(num_nodes, in_channels, config.hidden, out_channels, config.layers, config.dropout)


def _prepare_matrix(model: Any, graph: Graph, config: TrainConfig, device: torch.device, *_: Any) -> tuple[Any, ...]:
    return (SparseFeatures.from_dense(model.matrix(graph), device),)


def _build_geom_gcn(config: GeomGCNConfig, in_channels: int, out_channels: int) -> nn.Module:
    return GeomGCN(in_channels, config.hidden, out_channels, config.layers, config.dropout)


def _prepare_relations(
    graph: Graph,
    config: GeomGCNConfig,
    device: torch.device,
    progress: Progress | None = None,
    published: Reader | None = None,
) -> tuple[Any, ...]:
    relations = find_relations(graph, config.space, published)
    return (SparseFeatures.from_dense(virtual_nodes(relations), device),)


def _baseline(
    model: Any,
    summary: str,
    reference: str,
    cost: str,
    config: type[TrainConfig] = TrainConfig,
    build: Callable[..., nn.Module] | None = None,
    per_node: bool = False,
    **defaults: Any,
) -> ModelSpec:
    """A model of another paper, with the settings that paper used for all its data sets."""
    return ModelSpec(
        summary,
        config,
        build or partial(_build_baseline, model),
        partial(_prepare_matrix, model),
        defaults=defaults,
        sparse=True,
        reference=reference,
        cost=cost,
        per_node=per_node,
    )


def _asgat(
    summary: str,
    fixed: dict[str, Any],
    defaults: dict[str, Any] | None = None,
    cost: str = "O(N·F·H + m·(R·P + N·k·H))",
) -> ModelSpec:
    def prepare(
        graph: Graph, config: ASGATConfig, device: torch.device, progress: Progress | None = None
    ) -> tuple[Any, ...]:
        return (make_operator(graph, config, device, progress=progress),)

    reference = "Li et al., ECML-PKDD 2021"
    return ModelSpec(summary, ASGATConfig, _build_asgat, prepare, fixed, defaults or {}, True, reference, cost)


PAPER: dict[str, Any] = {**dict.fromkeys(OPTIONS, False), "members": 1, "similar": 0}

MODELS: dict[str, ModelSpec] = {
    "asgat-cheb": _asgat(
        "the paper's model, scores by Chebyshev polynomials",
        {"operator": "chebyshev", "filter": "mlp", **PAPER},
    ),
    "asgat-exact": _asgat(
        "the paper's model, scores by eigenvectors",
        {"operator": "exact", "filter": "mlp", **PAPER},
        cost="O(N·F·H + m·(N³ + N·k·H))",
    ),
    "asgat-arma": _asgat(
        "the paper's model, scores by rational functions",
        {"operator": "arma", "filter": "mlp", **PAPER},
        {"order": 30},
    ),
    "asgat-heat": _asgat("the paper's model with a heat kernel", {"filter": "heat", **PAPER}),
    "asgat-linear": replace(
        _asgat(
            "the paper's model with a linear last layer",
            {"operator": "chebyshev", "filter": "mlp", **PAPER},
        ),
        build=partial(_build_asgat, model=ASGATLinear),
    ),
    "asgat-plus": _asgat("the paper's model with a root term and options", {}, {"root": True}),
    # The baselines' defaults are the settings of their papers, or of PyG's benchmark of them where a paper gives none.
    # GCN, SGC, ARMANet and GAT give them for the citation graphs, ChebNet has them from GCN's paper; APPNP's were found
    # on Cora-ML and CiteSeer, GPR-GNN's per data set (none for Wisconsin), GraphSAGE's on other graphs, and LINKX's
    # paper searched and does not say what it found. Recipes hold what differs by data set.
    "mlp": ModelSpec(
        "features alone",
        TrainConfig,
        partial(_build_baseline, MLP),
        lambda *_: (),
        sparse=True,
        reference="Rumelhart et al., Nature 1986",
        cost="O(N·F·H)",
    ),
    "gcn": _baseline(GCN, "graph convolutions", "Kipf and Welling, ICLR 2017", "O(N·F·H + E·H)", hidden=16),
    "sgc": _baseline(
        SGC,
        "a linear map of features smoothed K times",
        "Wu et al., ICML 2019",
        "O(N·F·H + K·E·H)",
        SGCConfig,
        _build_sgc,
        lr=0.2,
        weight_decay=5e-6,
        dropout=0.0,
    ),
    "chebnet": _baseline(
        ChebNet,
        "Chebyshev filters of order K",
        "Defferrard et al., NeurIPS 2016",
        "O(K·(N·F·H + E·H))",
        ChebNetConfig,
        hidden=16,
    ),
    "armanet": _baseline(
        ARMANet,
        "recursive ARMA filters in m stacks of K steps",
        "Bianchi et al., TPAMI 2021",
        "O(m·(N·F·H + K·E·H))",
        ARMANetConfig,
        hidden=16,
    ),
    "gat": _baseline(
        GAT,
        "attention over neighbours",
        "Veličković et al., ICLR 2018",
        "O(m·(N·F·H + E·H))",
        GATConfig,
        lr=0.005,
        dropout=0.6,
        hidden=8,
    ),
    "sage": _baseline(
        SAGE,
        "own features and the neighbours' mean",
        "Hamilton et al., NeurIPS 2017",
        "O(N·F·H + E·H)",
        weight_decay=0.0,
        dropout=0.0,
        hidden=128,
    ),
    "appnp": _baseline(
        APPNP,
        "an MLP, then K steps of PageRank",
        "Klicpera et al., ICLR 2019",
        "O(N·F·H + K·E·H)",
        APPNPConfig,
    ),
    "gpr-gnn": _baseline(
        GPRGNN,
        "an MLP, then K steps with learned weights",
        "Chien et al., ICLR 2021",
        "O(N·F·H + K·E·H)",
        GPRGNNConfig,
    ),
    "linkx": _baseline(
        LINKX,
        "features and adjacency rows, mapped apart",
        "Lim et al., NeurIPS 2021",
        "O(N·F·H + E·H)",
        build=_build_linkx,
        per_node=True,
        weight_decay=1e-3,
        normalize_features=False,
    ),
    "h2gcn": _baseline(
        H2GCN,
        "K rounds over neighbours at one hop and, apart, at two",
        "Zhu et al., NeurIPS 2020",
        "O(N·F·H + 2^K·T·H)",
    ),
    "geom-gcn": ModelSpec(
        "neighbours in the graph and in a latent space, by direction",
        GeomGCNConfig,
        _build_geom_gcn,
        _prepare_relations,
        defaults={"lr": 0.05, "weight_decay": 5e-6, "hidden": 48},
        sparse=True,
        reference="Pei et al., ICLR 2020",
        cost="O(N·F·H + E·H)",
        published=True,
    ),
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
            raise AsgatError(f"{name} has no setting {shown(key)}. {suggest(key, known)}")
        if key in spec.fixed and value != spec.fixed[key]:
            raise AsgatError(
                f"{name} stands for {key} = {spec.fixed[key]}; it cannot be set to {shown(value)}. "
                "asgat-plus is the form with options."
            )
    return spec.config(**{**spec.defaults, **values, **spec.fixed})
