"""Settings: frozen, typed, checked when they are made. The same object feeds the API, the command line and the run."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

from asgat.errors import AsgatError, shown, suggest

GROUPS = ("model", "training", "table", "numerics")
OPTIONS = ("root", "mix", "adjacency", "jump", "propagate", "balanced")
"""Settings that turn the paper's model into another one."""

POSITIVE = 1e-12  # the least value of a number that must not be 0
MANY = 100_000  # most steps, heads or restarts
LARGEST = 2**31 - 1  # of counts without another bound: products of two must fit in 64 bits
_DEEP = 1000  # of what is built or computed one after the other: orders, layers, members


def _key(group: str, default: Any, help: str, **bounds: float) -> Any:
    """A setting and its meaning. Numbers have bounds: ``low`` and ``high`` are allowed values, ``below`` is not."""
    return dataclasses.field(default=default, metadata={"group": group, "help": help, **bounds})


_model, _training, _table, _numerics = (partial(_key, group) for group in GROUPS)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings every model has."""

    lr: float = _training(0.01, "learning rate", low=POSITIVE)
    weight_decay: float = _training(5e-4, "weight decay", low=0.0)
    dropout: float = _model(0.5, "dropout probability", low=0.0, below=1.0)
    hidden: int = _model(64, "size of hidden layers (per head)", low=1, high=1_000_000)
    layers: int = _model(2, "number of layers", low=1, high=_DEEP)
    epochs: int = _training(2000, "maximum number of epochs", low=1, high=LARGEST)
    patience: int = _training(100, "epochs without improvement on validation before stopping", low=1, high=LARGEST)
    stop_on: Literal["both", "score"] = _training("both", "epoch to keep: best in loss and score, or by score alone")
    max_restarts: int = _training(3, "restarts of a run no better than the majority class", low=0, high=MANY)
    normalize_features: bool = _training(True, "scale feature rows to sum 1")
    self_loops: Literal["keep", "add", "remove"] = _training("keep", "self-loops of the graph: keep, add or remove")
    balanced: bool = _training(False, "weight training nodes so that every class counts the same in the loss")
    balance: float = _training(1.0, "balanced: exponent of the inverse class sizes; 0 has no effect", low=0.0, high=1.0)
    members: int = _model(1, "independently trained networks whose probabilities are averaged", low=1, high=_DEEP)

    decoupled_decay: ClassVar[bool] = False
    """Whether weight decay shrinks the weights themselves (AdamW) instead of being added to the gradient (Adam)."""

    PRUNED: ClassVar[Mapping[str, tuple[Any, str]]] = {}
    """Settings of earlier versions: the value they had unless set, and the class, if any, that has the argument now."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _checked(field.name, getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, value)
            for number in value if isinstance(value, tuple) else (value,):
                if type(number) in (int, float):
                    _check_range(field.name, number, field.metadata)

    @classmethod
    def keys(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]

    @classmethod
    def parse(cls, key: str, text: str) -> Any:
        """The value of a setting from its text, as in ``--set key=value``."""
        if key in cls.PRUNED:
            raise _pruned(cls, key)
        if key not in (known := cls.keys()):
            raise AsgatError(f"Unknown setting {key!r}. {suggest(key, known)}")
        return _parsed(key, text, typing.get_type_hints(cls)[key])

    @classmethod
    def without_pruned(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that an earlier version may have written, without those that are no longer settings.

        Raises:
            AsgatError: one of them has another value than its default.
        """
        for key, value in values.items():
            if key in cls.PRUNED and value != cls.PRUNED[key][0]:
                raise _pruned(cls, key)
        return {key: value for key, value in values.items() if key not in cls.PRUNED}

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for TOML and JSON; None is written as the word none."""
        values = dataclasses.asdict(self)
        return {k: "none" if v is None else list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@dataclass(frozen=True, kw_only=True)
class SpectralConfig(TrainConfig):
    """Settings of every model with spectral attention or filters: heads, graph, filter, table and numerics."""

    heads: int = _model(8, "attention heads of hidden layers", low=1, high=MANY)
    k: int | None = _model(10, "nodes each node attends to per head; none means all it reaches", low=1, high=LARGEST)
    adjacency: bool = _model(False, "adjacency rows as additional features; the weights then belong to one graph")
    similar: int = _model(0, "nearest neighbours by features each node is connected to", low=0, high=MANY)
    similar_weight: float = _model(0.2, "similar: weight of these edges relative to the graph's mean", low=POSITIVE)
    filter: Literal["mlp", "heat", "polynomial"] = _model("mlp", "kind of spectral filter")
    filter_hidden: tuple[int, ...] = _model((64, 64), "hidden sizes of the filter MLP", low=1, high=10_000)
    filter_activation: Literal["none", "relu", "tanh"] = _model("none", "output activation of the filter MLP")
    heat_scale: float = _model(1.0, "scale s of the heat kernel", low=POSITIVE)
    form: Literal["auto", "dense", "table"] = _table("auto", "score all pairs, or candidates in a table; auto by size")
    candidates: int = _table(32, "entries kept per order and row", low=1, high=LARGEST)
    cap: int = _table(256, "neighbours kept per row", low=0, high=LARGEST)
    storage: Literal["float32", "float16"] = _table("float32", "precision of the stored values")
    builder: Literal["auto", "exact", "truncated"] = _table("auto", "exact rows, or bounded neighbourhoods")
    neighbourhood: int = _table(512, "nodes the truncated builder looks at for a row", low=1, high=LARGEST)
    operator: Literal["chebyshev", "exact", "arma"] = _numerics("chebyshev", "how scores are computed")
    order: int = _numerics(15, "Chebyshev order R; arma: order of its expansion on a table", low=1, high=_DEEP)
    fit_error: float = _numerics(0.01, "arma: relative error up to which a polynomial is enough", low=0.0)

    @property
    def attends(self) -> bool:
        """Whether the model has attention, and needs scores of pairs of nodes."""
        return True

    PRUNED: ClassVar[Mapping[str, tuple[Any, str]]] = {
        "include_unreachable": (False, "ASGATConv"),
        "sampling_points": ("none", "ChebyshevOperator"),
        "lambda_max": ("bound", "ChebyshevOperator"),
        "damping": (False, "ChebyshevOperator"),
        "numerator": (18, "ArmaOperator"),
        "denominator": (12, "ArmaOperator"),
        "steps": (30, "ArmaOperator"),
        "arma_tolerance": (1e-4, "ArmaOperator"),
        "filter_degree": (3, "PolynomialFilter"),
        "heat_learned": (False, "HeatFilter"),
        "tolerance": ("none", ""),
        "batch_size": ("none", ""),
        "exact_sums": (False, ""),
    }


@dataclass(frozen=True, kw_only=True)
class ASGATConfig(SpectralConfig):
    """Settings of ASGAT in all its forms."""

    out_heads: int = _model(1, "attention heads of the last layer, averaged", low=1, high=MANY)
    elu: Literal["every", "hidden", "last", "none"] = _model("hidden", "layers followed by an ELU")
    bias: bool = _model(True, "add a learned bias in every layer; the paper's layers have none")
    root: bool = _model(False, "add the node's own features, x W_self, in every layer")
    mix: bool = _model(False, "learn a weight for each head of a layer; equal at the start")
    gain: float = _model(1.0, "root: factor of the attention term next to the root term", low=POSITIVE)
    jump: bool = _model(False, "add the input features, x W_jump, to the last layer's output")
    propagate: bool = _model(False, "apply one more learned response, over the whole spectrum, to the output")
    alpha: float = _model(0.1, "propagate: teleport probability of its initial PageRank", low=0.0, high=1.0)


Channels = Literal[
    "attention", "filters", "mean", "attention+filters", "attention+mean", "filters+mean", "attention+filters+mean"
]
_CHANNELS_HELP = "what a block adds to a node's own features: attention, filters and neighbour mean, joined by +"


@dataclass(frozen=True, kw_only=True)
class ASGATDeepConfig(SpectralConfig):
    """Settings of ASGAT's deep form: residual blocks. Its optimiser is AdamW."""

    hidden: int = _model(64, "size of rows between blocks; with filters a multiple of heads", low=1, high=1_000_000)
    layers: int = _model(2, "number of blocks", low=1, high=_DEEP)
    heads: int = _model(8, "heads of a block's attention, and of its filters", low=1, high=MANY)
    channels: Channels = _model("attention+filters", _CHANNELS_HELP)  # noqa: RUF009
    input_dropout: bool = _model(False, "apply dropout to the features, too")

    decoupled_decay: ClassVar[bool] = True

    PRUNED: ClassVar[Mapping[str, tuple[Any, str]]] = {**SpectralConfig.PRUNED, "attention_dropout": (False, "GAT")}

    @property
    def attends(self) -> bool:
        return "attention" in self.channels


@dataclass(frozen=True, kw_only=True)
class SGCConfig(TrainConfig):
    """Settings of SGC, a linear model: ``hidden`` and ``layers`` have no effect."""

    steps: int = _model(2, "propagation steps", low=0, high=MANY)


@dataclass(frozen=True, kw_only=True)
class ChebNetConfig(TrainConfig):
    """Settings of ChebNet."""

    order: int = _model(2, "degree of the Chebyshev polynomials", low=0, high=_DEEP)


@dataclass(frozen=True, kw_only=True)
class ARMANetConfig(TrainConfig):
    """Settings of ARMANet."""

    stacks: int = _model(2, "parallel stacks, averaged", low=1, high=MANY)
    depth: int = _model(1, "iterations of each stack", low=1, high=_DEEP)
    skip_dropout: float = _model(0.75, "dropout of the skip connection from the input", low=0.0, below=1.0)


@dataclass(frozen=True, kw_only=True)
class GATConfig(TrainConfig):
    """Settings of GAT."""

    heads: int = _model(8, "attention heads of hidden layers", low=1, high=MANY)
    out_heads: int = _model(1, "attention heads of the last layer, averaged", low=1, high=MANY)
    attention_dropout: float = _model(0.6, "dropout of attention weights", low=0.0, below=1.0)


@dataclass(frozen=True, kw_only=True)
class APPNPConfig(TrainConfig):
    """Settings of APPNP."""

    steps: int = _model(10, "propagation steps", low=0, high=MANY)
    alpha: float = _model(0.1, "teleport probability of PageRank", low=0.0, high=1.0)


@dataclass(frozen=True, kw_only=True)
class GPRGNNConfig(APPNPConfig):
    """Settings of GPR-GNN, whose step weights start as those of APPNP."""

    propagation_dropout: float = _model(0.5, "dropout between the MLP and the propagation", low=0.0, below=1.0)


_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _check_range(key: str, value: float, bounds: Mapping[str, Any]) -> None:
    low, high, below = (bounds.get(key) for key in ("low", "high", "below"))
    if not math.isfinite(value):
        raise AsgatError(f"{key} must be a finite number, but is {value}.")
    if low is not None and value < low:
        raise AsgatError(f"{key} must be {'positive' if low == POSITIVE else f'at least {low:g}'}, but is {value}.")
    if high is not None and value > high:
        raise AsgatError(f"{key} must be at most {high}, but is {value}.")
    if below is not None and value >= below:
        raise AsgatError(f"{key} must be below {below:g}, but is {value}.")


def _pruned(config: type[TrainConfig], key: str) -> AsgatError:
    default, owner = config.PRUNED[key]
    argument = f" but an argument of {owner}" if owner else ""
    return AsgatError(f"{key} is no longer a setting{argument}; leave it out, which means {default}.")


def _checked(key: str, value: Any, hint: Any) -> Any:
    """The value in the type of its setting, or an error that names both."""
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in choices and isinstance(value, str):
            return value
        raise AsgatError(f"{key} must be one of {', '.join(choices)}, not {shown(value)}.")
    if origin is types.UnionType:  # the only unions here are with None
        return None if value in (None, "none") else _checked(key, value, choices[0])
    if origin is tuple:
        if isinstance(value, (list, tuple)) and len(value) <= 100 and all(type(item) is int for item in value):
            return tuple(_checked(key, item, int) for item in value)
        raise AsgatError(f"{key} must be a list of at most 100 whole numbers, not {shown(value)}.")
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise AsgatError(f"{key} must fit in 64 bits, but has {value.bit_length()}.")
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise AsgatError(f"{key} must be {_KINDS[hint]}, not {shown(value)}.")
    return value


def _parsed(key: str, text: str, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return text
    if origin is types.UnionType:
        return None if text.lower() == "none" else _parsed(key, text, typing.get_args(hint)[0])
    try:
        if origin is tuple:
            return tuple(int(part) for part in text.strip("[]()").split(",") if part.strip())
        return _TRUTH[text.lower()] if hint is bool else hint(text)
    except (ValueError, KeyError):
        kind = _KINDS.get(hint, "whole numbers separated by commas")
        raise AsgatError(f"{key} must be {kind}, not {shown(text)}.") from None
