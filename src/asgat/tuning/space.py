"""What is searched: the paper's grid, the choices it leaves open, and each baseline's own settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asgat.errors import AsgatError
from asgat.nn.registry import make_config, model_spec
from asgat.recipe import SHARED, load_config, read_recipe


@dataclass(frozen=True)
class Between:
    """Numbers from ``low`` to ``high``, both included; whole ones where both are."""

    low: float
    high: float
    log: bool = False


Choice = tuple[Any, ...]
Space = dict[str, Between | Choice]

BATCHED = ("lr", "weight_decay", "dropout")
"""Settings in which trials that are trained together may differ."""

# The paper's Table of hyper-parameters, widened to the learning rates and sizes its authors published; R is 15 there.
GRID: Space = {
    "lr": Between(1e-4, 0.1, log=True),
    "weight_decay": Between(1e-5, 5e-3, log=True),
    "dropout": Between(0.0, 0.8),
    "hidden": Between(32, 512, log=True),
    "heads": Between(1, 18),
    "k": Between(3, 20),
    "order": Between(8, 16),
}
OPEN: Space = {
    "elu": ("every", "hidden", "last", "none"),
    "filter_activation": ("none", "relu"),
    "normalize_features": (True, False),
}
PLUS: Space = {
    "root": (True, False),
    "mix": (False, True),
    "gain": Between(0.05, 1.0, log=True),
    "jump": (False, True),
    "adjacency": (False, True),
    "propagate": (False, True),
    "alpha": Between(0.05, 1.0),
    "balanced": (False, True),
    "balance": Between(0.2, 1.0),
}
NUMBER_OF = {"root": "gain", "propagate": "alpha", "balanced": "balance"}  # which plays no part without its option
HEAT: Space = {"heat_scale": Between(0.5, 10.0, log=True)}
BASELINE: Space = {
    "lr": Between(1e-3, 0.2, log=True),
    "weight_decay": Between(5e-6, 5e-3, log=True),
    "dropout": Between(0.0, 0.8),
    "hidden": Between(8, 128, log=True),
    "layers": Between(1, 3),
    "normalize_features": (True, False),
}
OWN: dict[str, Space] = {  # what a baseline has beyond
    "sgc": {"steps": Between(1, 4)},
    "chebnet": {"order": Between(1, 4)},
    "armanet": {"stacks": Between(1, 3), "depth": Between(1, 4), "skip_dropout": Between(0.0, 0.75)},
    "gat": {"heads": Between(1, 8), "attention_dropout": Between(0.0, 0.6)},
    "appnp": {"alpha": Between(0.05, 0.9), "steps": Between(5, 20)},
    "gpr-gnn": {"alpha": Between(0.0, 1.0), "propagation_dropout": Between(0.0, 0.7)},
    "geom-gcn": {"space": ("isomap", "poincare", "struc2vec")},
}
UNUSED = {"sgc": ("hidden", "layers")}  # settings a baseline has and does not use

OF_THE_DATA = ("normalize_features", "self_loops")
"""Settings that belong to a data set where its recipe has them for all models."""

WEBKB = dict(lr=0.05, weight_decay=1e-4, dropout=0.1, hidden=32, heads=8, k=9, order=12, elu="hidden")
STARTS: dict[str, list[dict[str, Any]]] = {  # published or known settings of ASGAT, tried first
    "texas": [dict(lr=0.06, weight_decay=5e-4, dropout=0.1, hidden=128, heads=8, k=13, order=16, elu="last"), WEBKB],
    "cornell": [dict(lr=0.1, weight_decay=5e-4, dropout=0.0, hidden=32, heads=6, k=17, order=16, elu="last"), WEBKB],
    "wisconsin": [
        dict(lr=0.1, weight_decay=8e-4, dropout=0.0, hidden=128, heads=4, k=20, order=10, elu="last"),
        WEBKB,
    ],
    "chameleon": [
        dict(lr=0.005, weight_decay=1e-5, dropout=0.6, hidden=128, heads=12, k=3, order=8, elu="none"),
        dict(lr=0.01, weight_decay=1e-5, dropout=0.6, hidden=64, heads=12, k=9, order=8, elu="none"),
        dict(lr=0.01, weight_decay=1e-3, dropout=0.4, hidden=88, heads=12, k=6, order=8, elu="last"),
    ],
    "squirrel": [
        dict(lr=0.01, weight_decay=1e-4, dropout=0.6, hidden=128, heads=12, k=6, order=10, elu="hidden"),
        dict(lr=0.008, weight_decay=5e-5, dropout=0.5, hidden=256, heads=8, k=6, order=16, elu="last"),
        dict(lr=0.005, weight_decay=1e-5, dropout=0.6, hidden=128, heads=12, k=3, order=8, elu="none"),
    ],
    "cora": [
        dict(lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=32, heads=8, k=13, order=10, elu="hidden"),
        dict(lr=0.005, weight_decay=1e-4, dropout=0.1, hidden=32, heads=1, k=15, order=14, elu="last"),
    ],
    "citeseer": [
        dict(lr=0.005, weight_decay=8e-4, dropout=0.2, hidden=512, heads=9, k=11, order=14, elu="last"),
        dict(lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=64, heads=8, k=11, order=10, elu="hidden"),
    ],
    "pubmed": [dict(lr=0.01, weight_decay=1e-4, dropout=0.1, hidden=32, heads=2, k=11, order=15, elu="hidden")],
    "csbm": [dict(lr=0.01, weight_decay=5e-4, dropout=0.5, hidden=32, heads=8, k=6, order=10, elu="hidden")],
}


@dataclass(frozen=True)
class Search:
    """A search of one model's settings on one data set.

    Attributes:
        space: what is searched.
        held: settings every trial has.
        starts: values of ``space`` to try first.
    """

    space: Space
    held: dict[str, Any]
    starts: list[dict[str, Any]]


def make_search(dataset: str, model: str, held: dict[str, Any] | None = None) -> Search:
    """The search of a model's settings on a data set, with some of them held.

    A setting that plays no part beside the held ones is not searched: no order where scores are exact, no output
    activation of a heat kernel, which has a scale instead.
    """
    given = held or {}
    spec = model_spec(model)
    asgat = model.startswith("asgat-")
    recipe, defaults = load_config(dataset, model).to_dict(), make_config(model).to_dict()
    own = {key: value for key, value in recipe.items() if value != defaults[key]}  # of a baseline: its paper's settings
    of_the_data = {key: value for key, value in read_recipe(dataset).get(SHARED, {}).items() if key in OF_THE_DATA}
    kept = {**({} if asgat else own), **of_the_data, **given}
    config = make_config(model, **kept).to_dict()
    if asgat:
        space = {**GRID, **OPEN, **(PLUS if model == "asgat-plus" else {})}
        if config["filter"] == "heat":
            space |= HEAT
        if config["filter"] != "mlp":
            del space["filter_activation"]
        if config["operator"] != "chebyshev":  # arma's expansion wants a high one, exact scores none
            del space["order"]
        starts = [{**{key: config[key] for key in space}, **start} for start in STARTS.get(dataset, [])]
    else:
        space = {**BASELINE, **OWN.get(model, {})}
        for key in UNUSED.get(model, ()):
            del space[key]
        starts = [{key: recipe[key] for key in space}]
    fixed = {*given, *of_the_data, *spec.fixed}
    fixed |= {number for option, number in NUMBER_OF.items() if given.get(option) is False}
    space = {key: values for key, values in space.items() if key not in fixed}
    if not space:
        raise AsgatError("Every setting of the search is held by --set; leave one open.")
    starts = [{key: value for key, value in start.items() if key in space} for start in starts]
    starts = [start for start in starts if all(_holds(space[key], value) for key, value in start.items())]
    return Search(space, {key: value for key, value in kept.items() if key not in space}, starts)


def settings_of(search: Search, drawn: dict[str, Any]) -> dict[str, Any]:
    """The settings of a trial; numbers drawn are rounded to what one would write down."""
    return {**search.held, **{key: _rounded(value, search.space[key]) for key, value in drawn.items()}}


def _rounded(value: Any, values: Between | Choice) -> Any:
    if not isinstance(value, float) or not isinstance(values, Between):
        return value
    return float(f"{value:.3g}") if values.log else round(value, 2)


def _holds(values: Between | Choice, value: Any) -> bool:
    return values.low <= value <= values.high if isinstance(values, Between) else value in values
