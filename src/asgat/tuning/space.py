"""The settings a search tries: ranges from ``space.toml``, and known good ones from ``known_settings.toml``."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from asgat.config import ASGATDeepConfig, SpectralConfig, TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import make_config, model_spec
from asgat.recipe import SHARED, load_config, read_recipe

Settings = dict[str, Any]

_KNOWN = tomllib.loads(resources.files(__package__).joinpath("known_settings.toml").read_text("utf-8"))
CHEBYSHEV: dict[str, Settings] = _KNOWN["published"]["chebyshev"]
EXACT: dict[str, Settings] = _KNOWN["published"]["exact"]
PROGRAM: Settings = _KNOWN["published"]["program"]
DEEP_STARTS: list[Settings] = _KNOWN["deep"]
"""What a search of asgat-deep tries first on any data set."""


def published_settings(dataset: str, operator: str = "chebyshev") -> Settings:
    """The authors' settings for a data set and an operator; those of Chebyshev if the operator has none."""
    return {**PROGRAM, **(EXACT if operator == "exact" else {}).get(dataset, CHEBYSHEV[dataset])}


def first_settings(dataset: str, operator: str = "chebyshev") -> list[Settings]:
    """The settings that a search on a data set tries first."""
    starts = []
    for start in _KNOWN["starts"].get(dataset, []):
        published = published_settings(dataset, operator) if "published" in start else {}
        starts.append({**published, **{key: value for key, value in start.items() if key != "published"}})
    return starts


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; integers if both are integers."""

    low: float
    high: float
    log: bool = False


Choice = tuple[Any, ...]
Space = dict[str, Range | Choice]

PARAMETER_OF = {"root": "gain", "propagate": "alpha", "balanced": "balance"}  # unused if the option is off
BASELINE_UNUSED = {"sgc": ("hidden", "layers")}

DATA_SETTINGS = ("normalize_features", "self_loops")
"""Settings that are fixed if a data set's recipe has them for all models."""


@dataclass(frozen=True)
class SearchSpace:
    """The search of one model's settings on one data set."""

    space: Space  # the settings that are searched
    fixed: dict[str, Any]  # settings that are the same in every trial
    starts: list[dict[str, Any]]  # values of ``space`` to try first


def _parsed(table: dict[str, Any]) -> Space:
    return {key: tuple(value) if isinstance(value, list) else Range(**value) for key, value in table.items()}


_TABLES = tomllib.loads(resources.files(__package__).joinpath("space.toml").read_text("utf-8"))
_EXTRA = {model: _parsed(table) for model, table in _TABLES.pop("extra").items()}
SPACES = {name: _parsed(table) for name, table in _TABLES.items()}


def make_search_space(
    dataset: str, model: str, given: dict[str, Any] | None = None, base: TrainConfig | None = None
) -> SearchSpace:
    """The search space of a model on a data set, with some settings given by the user.

    Settings that have no effect with the fixed ones are not searched: the order with exact scores, or the output
    activation of a heat kernel, which has a scale instead.

    Args:
        base: the settings for a user's graph, which has no recipe: they are tried first, and fixed unless searched.
    """
    given = given or {}
    spec = model_spec(model)
    spectral = issubclass(spec.config, SpectralConfig)
    recipe, defaults = (base or load_config(dataset, model)).to_dict(), make_config(model).to_dict()
    own = {key: value for key, value in recipe.items() if value != defaults[key]}  # of a baseline: its paper's settings
    if base is None:
        shared = read_recipe(dataset).get(SHARED, {})
        of_the_data = {key: value for key, value in shared.items() if key in DATA_SETTINGS}
    else:
        of_the_data = {"normalize_features": base.normalize_features}  # encoding has scaled the features
    kept = {**({} if spectral and base is None else own), **of_the_data, **given}
    config = make_config(model, **kept).to_dict()
    if issubclass(spec.config, ASGATDeepConfig):
        space, first = _deep_space(config, given), [*([{}] if base else []), *DEEP_STARTS]
    elif spectral:
        space = {**SPACES["grid"], **SPACES["unspecified"], **(SPACES["plus"] if model == "asgat-plus" else {})}
        first = [{}] if base else first_settings(dataset, config["operator"])
    else:
        space = {**SPACES["baseline"], **_EXTRA.get(model, {})}
        first = [{key: recipe[key] for key in space}]
    if spectral and config["filter"] == "heat":
        space |= SPACES["heat"]
    unused = set(BASELINE_UNUSED.get(model, ()))
    if config.get("filter", "mlp") != "mlp":
        unused.add("filter_activation")
    if spectral and config["operator"] != "chebyshev":  # ARMA's expansion needs a high order, exact scores need none
        unused.add("order")
    space = {key: values for key, values in space.items() if key not in unused}
    starts = [{**{key: config[key] for key in space}, **start} for start in first]
    fixed = {*given, *of_the_data, *spec.fixed}
    fixed |= {parameter for option, parameter in PARAMETER_OF.items() if given.get(option) is False}
    space = {key: values for key, values in space.items() if key not in fixed}
    if not space:
        raise AsgatError("Every setting of the search is fixed by --set; leave at least one open.")
    starts = [{key: value for key, value in start.items() if key in space} for start in starts]
    starts = [start for start in starts if all(_contains(space[key], value) for key, value in start.items())]
    return SearchSpace(space, {key: value for key, value in kept.items() if key not in space}, starts)


def _deep_space(config: dict[str, Any], given: dict[str, Any]) -> Space:
    """The space of asgat-deep, without what the given channels do not use and heads that do not fit a given size."""
    space = dict(SPACES["deep"])
    channels = config["channels"].split("+") if "channels" in given else ["attention", "filters", "mean"]
    for key, users in {
        "k": {"attention"},
        "heads": {"attention", "filters"},
        "order": {"attention", "filters"},
    }.items():
        if users.isdisjoint(channels):
            del space[key]
    if "filters" in channels:  # heads share the hidden channels
        given_hidden, given_heads = given.get("hidden", 0), given.get("heads", 1)
        _limit(space, "heads", lambda heads: given_hidden % heads == 0)
        _limit(space, "hidden", lambda hidden: hidden % given_heads == 0)
    return space


def _limit(space: Space, key: str, fits: Callable[[int], bool]) -> None:
    """Leaves the choices of a setting that fit the given ones; all if none does, which training then reports."""
    choices = space[key]
    assert isinstance(choices, tuple)
    space[key] = tuple(choice for choice in choices if fits(choice)) or choices


def trial_settings(search: SearchSpace, drawn: dict[str, Any]) -> dict[str, Any]:
    """The settings of a trial; drawn numbers are rounded to two or three digits."""
    return {**search.fixed, **{key: _rounded(value, search.space[key]) for key, value in drawn.items()}}


def _rounded(value: Any, values: Range | Choice) -> Any:
    if not isinstance(value, float) or not isinstance(values, Range):
        return value
    return float(f"{value:.3g}") if values.log else round(value, 2)


def _contains(values: Range | Choice, value: Any) -> bool:
    return values.low <= value <= values.high if isinstance(values, Range) else value in values
