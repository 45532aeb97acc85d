"""The candidates of a leaderboard: which models at which settings are tried on a graph of some size and figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError, suggest
from asgat.leaderboard.folds import is_few
from asgat.nn.registry import make_config, model_spec

GUESSING = "guessing"  # the row of always predicting the most frequent class, or the classes' frequencies
FEW_FEATURES = 32  # up to here dropping features at random loses more than it gains
SMALL_VALIDATION = 1000  # validation nodes below which a score is too noisy to be trusted once


@dataclass(frozen=True)
class Preset:
    """How much is tried.

    Attributes:
        minutes: default of the time limit.
        settings: settings of every model, at most.
        first_epochs: length of the first round, after which the better half goes on.
        epochs, patience: of a training to its end.
        rounds: after that, how many candidates are trained on how many more divisions of the labelled nodes: where
            there are few nodes (``few_rounds``), and with a small and a large validation part.
    """

    minutes: float
    settings: int
    first_epochs: int
    epochs: int
    patience: int
    few_rounds: tuple[tuple[int, int], ...]
    rounds: tuple[tuple[int, int], ...]
    large_rounds: tuple[tuple[int, int], ...]

    def rounds_for(self, split: Split) -> tuple[tuple[int, int], ...]:
        if is_few(split):
            return self.few_rounds
        return self.rounds if len(split.val) < SMALL_VALIDATION else self.large_rounds


PRESETS = {
    "quick": Preset(2.0, 1, 30, 200, 30, (), (), ()),
    "default": Preset(10.0, 3, 40, 500, 50, ((8, 5),), ((8, 1), (4, 2)), ((3, 2),)),
    "best": Preset(60.0, 5, 60, 1000, 100, ((12, 5), (8, 5)), ((12, 1), (6, 2), (3, 4)), ((6, 1), (3, 3))),
}


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise AsgatError(f"Unknown preset {name!r}. {suggest(name, list(PRESETS))}")
    return PRESETS[name]


@dataclass(frozen=True)
class Candidate:
    """A model at some settings; ``name`` is its row of the table, which it may share with other settings."""

    name: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    directed: bool = False

    @cached_property
    def config(self) -> TrainConfig:
        return make_config(self.model, **self.settings)

    @property
    def uses_graph(self) -> bool:
        return self.model != "mlp"


# Dropout and weight decay in the order they are tried: for many features and for few.
REGULARISATION = {
    "many": ((0.5, 5e-4), (0.5, 5e-3), (0.8, 5e-4), (0.2, 5e-4), (0.5, 5e-5)),
    "few": ((0.2, 5e-4), (0.0, 5e-3), (0.5, 5e-4), (0.0, 5e-5), (0.2, 5e-5)),
}
LINEAR_DECAY = (1e-3, 1e-2, 1e-4, 1e-1, 1e-5)
LINKX = ((64, 0.5, 5e-3), (64, 0.5, 5e-4), (32, 0.5, 1e-2), (64, 0.8, 5e-3), (128, 0.5, 5e-3))
DEEP = ((0.5, 1e-3), (0.2, 1e-3), (0.5, 1e-1), (0.2, 1e-1), (0.7, 1e-2))


def make_field(
    dataset: Dataset, preset: Preset, advised: Mapping[str, Any] | None = None, one_way: bool = False
) -> list[Candidate]:
    """The candidates for a data set, cheapest first.

    Args:
        advised: ``k`` and ``order`` for models with attention, as the graph's figures suggest.
        one_way: whether edges seem to have a direction. Candidates that use it are then tried too.
    """
    few = dataset.num_features <= FEW_FEATURES
    regularisation = REGULARISATION["few" if few else "many"][: preset.settings]
    shared = {"epochs": preset.epochs, "patience": preset.patience, "max_restarts": 0, "normalize_features": False}
    found: list[Candidate] = []

    def add(name: str, model: str, directed: bool = False, **settings: Any) -> None:
        own = dict(advised or {}) if issubclass(model_spec(model).config, SpectralConfig) else {}
        found.append(Candidate(name, model, {**shared, **own, **settings}, directed))

    for decay in LINEAR_DECAY[: preset.settings]:
        add("logistic regression", "mlp", layers=1, dropout=0.0, lr=0.05, weight_decay=decay)
    for model in ("mlp", "gcn", "sage"):
        for dropout, decay in regularisation:
            add(model, model, dropout=dropout, weight_decay=decay, hidden=64)
    if few and preset.settings > 1:
        add("gcn", "gcn", dropout=0.2, hidden=64, layers=3)
    for hidden, dropout, decay in LINKX[: preset.settings]:
        add("linkx", "linkx", dropout=dropout, weight_decay=decay, hidden=hidden)
    # Dropping features pays where there are many, and loses much where there are few.
    deep: list[dict[str, Any]] = [
        {"dropout": dropout, "weight_decay": decay, "input_dropout": not few}
        for dropout, decay in DEEP[: max(1, preset.settings - 1)]
    ]
    rows: dict[str, Any] = {"channels": "filters", "adjacency": True}
    for own in deep:
        add("asgat-deep, filters", "asgat-deep", channels="filters", **own)
    for own in deep:
        add("asgat-deep, adjacency", "asgat-deep", **rows, **own)
    for dropout, decay in regularisation[: max(1, preset.settings - 1)]:
        add("asgat-plus", "asgat-plus", dropout=dropout, weight_decay=decay, hidden=16)
    if preset.settings > 1:
        add("asgat-plus, adjacency", "asgat-plus", dropout=0.5, hidden=16, adjacency=True)
    for own in deep[:2]:
        add("asgat-deep", "asgat-deep", **own)
    if one_way:
        add("asgat-deep, directed", "asgat-deep", True, **deep[0])
        add("asgat-deep, directed rows", "asgat-deep", True, **rows, **deep[0])
    return found


def count_parameters(model: str, config: TrainConfig, **sizes: Any) -> int:
    """How many numbers a model learns; sizes are those of :func:`~asgat.training.runner.model_sizes`."""
    return sum(value.numel() for value in model_spec(model).make(config, **sizes).parameters())
