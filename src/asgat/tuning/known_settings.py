"""Settings of ASGAT that were published or are known to be good, read from ``known_settings.toml``."""

import tomllib
from importlib import resources
from typing import Any

Settings = dict[str, Any]

_KNOWN = tomllib.loads(resources.files(__package__).joinpath("known_settings.toml").read_text("utf-8"))
CHEBYSHEV: dict[str, Settings] = _KNOWN["published"]["chebyshev"]
EXACT: dict[str, Settings] = _KNOWN["published"]["exact"]
DEEP_STARTS: list[Settings] = _KNOWN["deep"]
"""What a search of asgat-deep tries first on any data set."""


def published_settings(dataset: str, operator: str = "chebyshev") -> Settings:
    """The authors' settings for a data set and an operator; those of Chebyshev if the operator has none."""
    return dict((EXACT if operator == "exact" else {}).get(dataset, CHEBYSHEV[dataset]))


def first_settings(dataset: str, operator: str = "chebyshev") -> list[Settings]:
    """The settings that a search on a data set tries first."""
    starts = []
    for start in _KNOWN["starts"].get(dataset, []):
        published = published_settings(dataset, operator) if "published" in start else {}
        starts.append({**published, **{key: value for key, value in start.items() if key != "published"}})
    return starts
