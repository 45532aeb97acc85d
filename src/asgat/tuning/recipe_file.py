"""The recipe a search found, as a file that `asgat train --recipe` takes."""

from __future__ import annotations

from typing import Any

from asgat.files.atomic import to_toml
from asgat.nn.registry import make_config
from asgat.recipe import FOUND


def recipe_text(model: str, settings: dict[str, Any], found: dict[str, Any]) -> str:
    """TOML: the model, its settings, and what found them."""
    make_config(model, **settings)
    head = "# Settings of the best mean score of a search; test nodes had no part in it.\n"
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    plain = {key: "none" if value is None else value for key, value in plain.items()}
    return head + to_toml({"model": model, model: plain}) + f"\n[{model}.{FOUND}]\n" + to_toml(found)
