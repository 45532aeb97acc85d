"""The configuration that is benchmarked: the authors' settings, and one candidate table for all data sets."""

from typing import Any

from asgat.config import ASGATConfig
from asgat.errors import AsgatError, suggest
from asgat.nn.registry import make_config
from asgat.tuning.known_settings import CHEBYSHEV

TABLE: dict[str, Any] = {"form": "table", "candidates": 32, "cap": 256}


def published_config(dataset: str, **changes: Any) -> ASGATConfig:
    """The published settings of asgat-cheb for a data set, with the table all benchmarks share."""
    if dataset not in CHEBYSHEV:
        raise AsgatError(f"No published settings for {dataset!r}. {suggest(dataset, list(CHEBYSHEV))}")
    config = make_config("asgat-cheb", **{**CHEBYSHEV[dataset], **TABLE, **changes})
    assert isinstance(config, ASGATConfig)
    return config
