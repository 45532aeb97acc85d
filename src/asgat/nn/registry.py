"""The models by name: settings, how each is built, and what its forward takes in addition to the features.

Importing it loads neither PyTorch nor PyG; the first model that is built does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from asgat.config import (
    OPTIONS,
    APPNPConfig,
    ARMANetConfig,
    ASGATConfig,
    ASGATDeepConfig,
    ChebNetConfig,
    GATConfig,
    GPRGNNConfig,
    SGCConfig,
    SpectralConfig,
    TrainConfig,
)
from asgat.errors import AsgatError, shown, suggest

if TYPE_CHECKING:
    import torch
    from torch import nn

    from asgat.graph import Graph
    from asgat.tables.candidate_table import Progress


@dataclass(frozen=True)
class ModelSpec:
    """A model under its name.

    Attributes:
        summary: one line for the list of models.
        reference: who proposed it, where and when.
        cost: of one layer; ``COST_LETTERS`` explains the letters.
        config: class of its settings.
        build: settings, number of features and of classes → module.
        prepare: graph, settings, device, a progress callback and the data set → what the module's ``forward`` takes
            after x, computed once per graph.
        defaults: settings with another default than ``config`` has.
        fixed: settings that belong to the name and cannot be changed.
        per_node: whether its weights belong to the nodes of one graph, whatever its settings; ``build`` then takes
            their number too. :meth:`belongs_to_graph` looks at the settings as well.
        directed: whether it can use the direction of edges; ``build`` then takes whether it should.
    """

    summary: str
    reference: str
    cost: str
    config: type[TrainConfig]
    build: Callable[..., nn.Module]
    prepare: Callable[..., tuple[Any, ...]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    per_node: bool = False
    directed: bool = False

    def make(
        self, config: TrainConfig, in_channels: int, out_channels: int, num_nodes: int, directed: bool = False
    ) -> nn.Module:
        """The module for a data set of this size, and for a directed graph or not."""
        own = [num_nodes] if self.belongs_to_graph(config) else []
        more = {"directed": True} if directed else {}
        if isinstance(config, SpectralConfig) or config.members == 1:
            return self.build(config, in_channels, out_channels, *own, **more)
        from asgat.nn.ensemble import AveragedModels

        one = config.replace(members=1)
        return AveragedModels([self.build(one, in_channels, out_channels, *own) for _ in range(config.members)])

    def belongs_to_graph(self, config: TrainConfig) -> bool:
        """Whether a model with these settings has weights for the nodes of one graph, and predicts no others."""
        return self.per_node or bool(getattr(config, "adjacency", False))


COST_LETTERS = (
    "N nodes, E edges, T pairs within two hops, F and H features before and after a layer, K steps or degree, "
    "m heads or stacks; ASGAT: P pairs scored, R degree, k nodes attended to"
)


def _prepare_operator(
    graph: Graph, config: SpectralConfig, device: torch.device, progress: Progress | None = None, *_: Any
) -> tuple[Any, ...]:
    from asgat.nn.from_config import make_operator

    return (make_operator(graph, config, device, progress=progress),)


def _prepare_matrix(model: str, graph: Graph, config: TrainConfig, device: torch.device, *_: Any) -> tuple[Any, ...]:
    from asgat.kernels.sparse_features import SparseFeatures

    return (SparseFeatures.from_dense(_load(model).matrix(graph), device),)


def _load(model: str) -> Any:
    """The class of a baseline, such as ``"GCN"``."""
    return getattr(import_module("asgat.nn.baselines"), model)


def _build_baseline(model: str, config: TrainConfig, in_channels: int, out_channels: int) -> nn.Module:
    shared = TrainConfig.keys()
    own = {key: value for key, value in vars(config).items() if key not in shared}
    net: nn.Module = _load(model)(in_channels, config.hidden, out_channels, config.layers, config.dropout, **own)
    return net


def _build_asgat(*arguments: Any, **options: Any) -> nn.Module:
    from asgat.nn.from_config import build_model

    return build_model(*arguments, **options)


def _asgat(summary: str, fixed: Mapping[str, Any], cost: str = "m·(R·P + N·k·H)", **defaults: Any) -> ModelSpec:
    reference, cost = "Li et al., ECML-PKDD 2021", f"O(N·F·H + {cost})"
    return ModelSpec(summary, reference, cost, ASGATConfig, _build_asgat, _prepare_operator, defaults, fixed)


def _baseline(
    model: str, summary: str, reference: str, cost: str, config: type[TrainConfig] = TrainConfig, **defaults: Any
) -> ModelSpec:
    """A model of another paper, with the settings that paper used for all its data sets."""
    build, prepare = partial(_build_baseline, model), partial(_prepare_matrix, model)
    return ModelSpec(summary, reference, f"O({cost})", config, build, prepare, defaults)


PAPER: dict[str, Any] = {**dict.fromkeys(OPTIONS, False), "members": 1, "similar": 0, "filter": "mlp"}

# The baselines' defaults are the settings of their papers, or of PyG's benchmark of them where a paper gives none.
# GCN, SGC, ARMANet and GAT give them for the citation graphs, ChebNet has them from GCN's paper; APPNP's were found
# on Cora-ML and CiteSeer, GPR-GNN's per data set (none for Wisconsin), GraphSAGE's on other graphs, and LINKX's
# paper searched and does not say what it found. Recipes hold what differs by data set.
# fmt: off
MODELS: dict[str, ModelSpec] = {
    "asgat-cheb": _asgat("the paper's model, scores by Chebyshev polynomials", {**PAPER, "operator": "chebyshev"}),
    "asgat-exact": _asgat("the paper's model, scores by eigenvectors", {**PAPER, "operator": "exact"},
                          cost="m·(N³ + N·k·H)"),
    "asgat-arma": _asgat("the paper's model, scores by rational functions", {**PAPER, "operator": "arma"}, order=30),
    "asgat-heat": _asgat("the paper's model with a heat kernel", {**PAPER, "filter": "heat"}),
    "asgat-linear": replace(
        _asgat("the paper's model with a linear last layer", {**PAPER, "operator": "chebyshev"}),
        build=partial(_build_asgat, linear=True)),
    "asgat-plus": replace(_asgat("the paper's model with a root term and options", {}, root=True), directed=True),
    "asgat-deep": ModelSpec(
        "residual blocks of spectral attention and spectral filters", "asgat, this package 2026",
        "O(N·F·H + R·E·H + m·N·(k + H)·H)", ASGATDeepConfig, _build_asgat, _prepare_operator,
        {"lr": 2e-3, "weight_decay": 1e-3, "hidden": 64, "heads": 4, "k": 5, "order": 8, "normalize_features": False,
         "stop_on": "score"}, directed=True),
    "mlp": replace(_baseline("MLP", "features only", "Rumelhart et al., Nature 1986", "N·F·H"), prepare=lambda *_: ()),
    "gcn": _baseline("GCN", "graph convolutions", "Kipf and Welling, ICLR 2017", "N·F·H + E·H", hidden=16),
    "sgc": replace(
        _baseline("SGC", "a linear map of features smoothed K times", "Wu et al., ICML 2019", "N·F·H + K·E·H",
                  SGCConfig, lr=0.2, weight_decay=5e-6, dropout=0.0),
        build=lambda config, features, classes: _load("SGC")(features, classes, config.steps, config.dropout)),
    "chebnet": _baseline("ChebNet", "Chebyshev filters of order K", "Defferrard et al., NeurIPS 2016",
                         "K·(N·F·H + E·H)", ChebNetConfig, hidden=16),
    "armanet": _baseline("ARMANet", "recursive ARMA filters in m stacks of K steps", "Bianchi et al., TPAMI 2021",
                         "m·(N·F·H + K·E·H)", ARMANetConfig, hidden=16),
    "gat": _baseline("GAT", "attention over neighbours", "Veličković et al., ICLR 2018", "m·(N·F·H + E·H)",
                     GATConfig, lr=0.005, dropout=0.6, hidden=8),
    "sage": _baseline("SAGE", "own features and the neighbours' mean", "Hamilton et al., NeurIPS 2017", "N·F·H + E·H",
                      weight_decay=0.0, dropout=0.0, hidden=128),
    "appnp": _baseline("APPNP", "an MLP, then K steps of PageRank", "Klicpera et al., ICLR 2019", "N·F·H + K·E·H",
                       APPNPConfig),
    "gpr-gnn": _baseline("GPRGNN", "an MLP, then K steps with learned weights", "Chien et al., ICLR 2021",
                         "N·F·H + K·E·H", GPRGNNConfig),
    "linkx": replace(
        _baseline("LINKX", "features and adjacency rows, mapped separately", "Lim et al., NeurIPS 2021", "N·F·H + E·H",
                  weight_decay=1e-3, normalize_features=False),
        build=lambda config, features, classes, nodes: _load("LINKX")(
            nodes, features, config.hidden, classes, config.layers, config.dropout),
        per_node=True),
    "h2gcn": _baseline("H2GCN", "K rounds over neighbours at one hop and, separately, at two",
                       "Zhu et al., NeurIPS 2020", "N·F·H + 2^K·T·H"),
}
# fmt: on


ELSEWHERE = {"geom-gcn": "python -m reproduce train DATASET --model geom-gcn"}
"""Models that the installed package does without, and the command that trains them in a clone of the repository."""


def register_model(name: str, spec: ModelSpec) -> None:
    """Adds a model, which commands and functions then find by its name; a name that is taken is refused."""
    if MODELS.get(name, spec) is not spec:
        raise AsgatError(f"There is a model {name!r} already; choose another name.")
    MODELS[name] = spec


def model_spec(name: str) -> ModelSpec:
    if name in ELSEWHERE and name not in MODELS:
        raise AsgatError(
            f"{name} is not in the installed package; `{ELSEWHERE[name]}` trains it in a clone of the repository, and "
            "`python -m reproduce compare` compares it with others."
        )
    if name not in MODELS:
        raise AsgatError(f"Unknown model {name!r}. {suggest(name, list(MODELS))}")
    return MODELS[name]


def make_config(name: str, **values: Any) -> TrainConfig:
    """The settings of a model, from its defaults and the given values; unknown and fixed keys are named.

    Settings of earlier versions are ignored if they have the value that is now fixed.
    """
    spec = model_spec(name)
    known, values = spec.config.keys(), spec.config.without_pruned(values)
    for key, value in values.items():
        if key not in known:
            raise AsgatError(f"{name} has no setting {shown(key)}. {suggest(key, known)}")
        if key in spec.fixed and value != spec.fixed[key]:
            raise AsgatError(
                f"{name} fixes {key} = {spec.fixed[key]}; it cannot be set to {shown(value)}. "
                "Use asgat-plus, which has these options."
            )
    return spec.config(**{**spec.defaults, **values, **spec.fixed})
