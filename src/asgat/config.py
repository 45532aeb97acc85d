"""Settings: frozen, typed, checked when they are made. The same object feeds the API, the command line and the run."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, Self

from asgat.errors import AsgatError, shown, suggest


def _key(default: Any, help: str, low: float | None = None, below: float | None = None) -> Any:
    """A setting with its meaning and, for numbers, the range ``low <= value < below``."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "below": below})


MANY = 100_000  # of what is done in turn; a file that asks for more would never be done
OPTIONS = ("root", "mix", "adjacency", "jump", "propagate", "balanced")
"""Settings that make of the paper's model another one."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings every model shares."""

    lr: float = _key(0.01, "learning rate of Adam", low=1e-12)
    weight_decay: float = _key(5e-4, "weight decay of Adam", low=0.0)
    dropout: float = _key(0.5, "dropout", low=0.0, below=1.0)
    hidden: int = _key(64, "size of hidden layers (per head)", low=1)
    layers: int = _key(2, "number of layers", low=1, below=MANY)
    epochs: int = _key(2000, "largest number of epochs", low=1)
    patience: int = _key(100, "epochs without a better validation loss or score before training stops", low=1)
    max_restarts: int = _key(3, "new starts allowed to a run that ends no better than the majority class", low=0)
    normalize_features: bool = _key(True, "scale feature rows to sum 1")
    self_loops: Literal["keep", "add", "remove"] = _key("keep", "self-loops of the graph: keep, add or remove")
    balanced: bool = _key(False, "weigh training nodes so that every class counts the same in the loss")
    balance: float = _key(1.0, "balanced: how far; 0.5 is half way, by the square roots of the classes' sizes", low=0.0)

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = _checked(field.name, getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, value)
            low, below = field.metadata.get("low"), field.metadata.get("below")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if not math.isfinite(value):
                    raise AsgatError(f"{field.name} must be a finite number, but is {value}.")
                if low is not None and value < low:
                    bound = f"at least {low:g}" if low != 1e-12 else "positive"
                    raise AsgatError(f"{field.name} must be {bound}, but is {value}.")
                if below is not None and value >= below:
                    raise AsgatError(f"{field.name} must be below {below:g}, but is {value}.")
        _check_probability("balance", self.balance)

    @classmethod
    def keys(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]

    @classmethod
    def parse(cls, key: str, text: str) -> Any:
        """The value of a setting from its text, as in ``--set key=value``."""
        if key not in (known := cls.keys()):
            raise AsgatError(f"Unknown setting {key!r}. {suggest(key, known)}")
        return _parsed(key, text, typing.get_type_hints(cls)[key])

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for TOML and JSON; None is written as the word none."""
        values = dataclasses.asdict(self)
        return {k: "none" if v is None else list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@dataclass(frozen=True, kw_only=True)
class ASGATConfig(TrainConfig):
    """Settings of ASGAT in all its forms."""

    heads: int = _key(8, "attention heads of hidden layers", low=1)
    out_heads: int = _key(1, "attention heads of the last layer, averaged", low=1)
    k: int | None = _key(10, "nodes each node attends to per head; none keeps all it reaches", low=1)
    elu: Literal["every", "hidden", "last", "none"] = _key("hidden", "layers followed by an ELU")
    root: bool = _key(False, "add the node's own features, x W_self, in every layer")
    mix: bool = _key(False, "learn how much each head of a layer counts; equally at the start")
    gain: float = _key(1.0, "root: factor of attention beside it; a small one lets it come in slowly", low=1e-12)
    adjacency: bool = _key(False, "adjacency rows as further features; the weights then belong to one graph")
    jump: bool = _key(False, "add the input features, x W_jump, to the last layer's output")
    propagate: bool = _key(False, "pass the output through one more learned response, over the whole spectrum")
    alpha: float = _key(0.1, "propagate: probability to go back, of PageRank where it starts; 1 is no change", low=0.0)
    members: int = _key(1, "networks trained apart whose probabilities are averaged", low=1, below=MANY)
    similar: int = _key(0, "join each node to so many whose features are most like its own", low=0, below=MANY)
    similar_weight: float = _key(0.2, "similar: weight of these links, 1 is the mean of the graph's own", low=1e-12)
    batch_size: int | None = _key(None, "training nodes of one step; none takes all of them at once", low=1)
    include_unreachable: bool = _key(False, "let nodes of other components compete, with score 0")
    form: Literal["auto", "dense", "table"] = _key("auto", "score all pairs, or candidates from a table; auto by size")
    candidates: int = _key(32, "table: entries kept of every order and row", low=1)
    cap: int = _key(256, "table: neighbours kept per row", low=0)
    storage: Literal["float32", "float16"] = _key("float32", "table: precision of the stored values")
    builder: Literal["auto", "exact", "truncated"] = _key("auto", "table: exact rows, or bounded neighbourhoods")
    tolerance: float | None = _key(None, "table: widen rows whose certified error is larger; none leaves them", low=0.0)
    operator: Literal["chebyshev", "exact", "arma"] = _key("chebyshev", "how scores are computed")
    order: int = _key(15, "Chebyshev order R; of arma, that of its expansion on a table", low=1, below=MANY)
    sampling_points: int | None = _key(None, "Chebyshev sampling points S; none takes R + 1", low=1, below=MANY)
    lambda_max: Literal["bound", "lanczos"] = _key("bound", "largest eigenvalue: the bound 2, or estimated")
    damping: bool = _key(False, "Jackson damping of the Chebyshev coefficients")
    numerator: int = _key(18, "arma: degree Q of the numerator", low=1, below=MANY)
    denominator: int = _key(12, "arma: degree P of the denominator", low=1, below=MANY)
    steps: int = _key(30, "arma: conjugate-gradient steps T at most, where all pairs are scored", low=1, below=MANY)
    fit_error: float = _key(0.01, "arma: error of a fit, beside the largest response, that is good enough", low=0.0)
    arma_tolerance: float = _key(1e-4, "arma: residual above which a head falls back to Chebyshev", low=1e-12)
    filter: Literal["mlp", "heat", "polynomial"] = _key("mlp", "kind of spectral filter")
    filter_hidden: tuple[int, ...] = _key((64, 64), "hidden sizes of the filter MLP")
    filter_activation: Literal["none", "relu", "tanh"] = _key("none", "output activation of the filter MLP")
    exact_sums: bool = _key(False, "table: layers and sums in double precision; the same losses on any number of ranks")
    filter_degree: int = _key(3, "degree of the polynomial filter", low=0, below=MANY)
    heat_scale: float = _key(1.0, "scale s of the heat kernel", low=1e-12)
    heat_learned: bool = _key(False, "learn the scale of the heat kernel per head")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling_points is not None and self.sampling_points < self.order + 1:
            least = self.order + 1
            raise AsgatError(f"sampling_points must be at least order + 1 = {least}, not {self.sampling_points}.")
        if any(size < 1 for size in self.filter_hidden):
            raise AsgatError(f"filter_hidden must hold sizes of at least 1, but is {list(self.filter_hidden)}.")
        _check_probability("alpha", self.alpha)


@dataclass(frozen=True, kw_only=True)
class SGCConfig(TrainConfig):
    """Settings of SGC, a linear model: ``hidden`` and ``layers`` play no part."""

    steps: int = _key(2, "steps of propagation", low=0, below=MANY)


@dataclass(frozen=True, kw_only=True)
class ChebNetConfig(TrainConfig):
    """Settings of ChebNet."""

    order: int = _key(2, "degree of the Chebyshev polynomials", low=0, below=MANY)


@dataclass(frozen=True, kw_only=True)
class ARMANetConfig(TrainConfig):
    """Settings of ARMANet."""

    stacks: int = _key(2, "parallel stacks, averaged", low=1)
    depth: int = _key(1, "iterations of each stack", low=1, below=MANY)
    skip_dropout: float = _key(0.75, "dropout where the input enters again", low=0.0, below=1.0)


@dataclass(frozen=True, kw_only=True)
class GATConfig(TrainConfig):
    """Settings of GAT."""

    heads: int = _key(8, "attention heads of hidden layers", low=1)
    out_heads: int = _key(1, "attention heads of the last layer, averaged", low=1)
    attention_dropout: float = _key(0.6, "dropout of attention weights", low=0.0, below=1.0)


@dataclass(frozen=True, kw_only=True)
class APPNPConfig(TrainConfig):
    """Settings of APPNP."""

    steps: int = _key(10, "steps of propagation", low=0, below=MANY)
    alpha: float = _key(0.1, "probability to go back to where a walk began", low=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_probability("alpha", self.alpha)


@dataclass(frozen=True, kw_only=True)
class GPRGNNConfig(APPNPConfig):
    """Settings of GPR-GNN, whose weights of the steps start as those of APPNP."""

    propagation_dropout: float = _key(0.5, "dropout between the MLP and the propagation", low=0.0, below=1.0)


@dataclass(frozen=True, kw_only=True)
class GeomGCNConfig(TrainConfig):
    """Settings of Geom-GCN."""

    space: Literal["isomap", "poincare", "struc2vec"] = _key("isomap", "latent space the nodes are placed in")


def _check_probability(key: str, value: float) -> None:
    if value > 1.0:
        raise AsgatError(f"{key} must be at most 1, but is {value}.")


def _checked(key: str, value: Any, hint: Any) -> Any:
    """The value in the type its setting has, or an error that names both."""
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in choices and isinstance(value, str):
            return value
        raise AsgatError(f"{key} must be one of {', '.join(choices)}, not {shown(value)}.")
    if origin is types.UnionType:  # the only unions here are with None
        return None if value in (None, "none") else _checked(key, value, choices[0])
    if origin is tuple:
        if isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
            return tuple(_checked(key, item, int) for item in value)
        raise AsgatError(f"{key} must be a list of whole numbers, not {shown(value)}.")
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise AsgatError(f"{key} must be a number a computer counts to, below 2^63, but has {value.bit_length()} bits.")
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        kind = {int: "a whole number", float: "a number", bool: "true or false"}[hint]
        raise AsgatError(f"{key} must be {kind}, not {shown(value)}.")
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
        if hint is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        return hint(text)
    except (ValueError, KeyError):
        kind = {int: "a whole number", float: "a number", bool: "true or false"}.get(hint, "whole numbers with commas")
        raise AsgatError(f"{key} must be {kind}, not {shown(text)}.") from None
