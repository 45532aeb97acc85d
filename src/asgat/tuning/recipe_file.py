"""The result of a search as a recipe file for `asgat train --recipe`."""

from typing import Any

from asgat.files.atomic import to_toml
from asgat.nn.registry import make_config
from asgat.recipe import FOUND


def recipe_text(model: str, settings: dict[str, Any], found: dict[str, Any]) -> str:
    values = make_config(model, **settings).to_dict()
    head = "# Settings of the best mean score of a search; test nodes were not used.\n"
    plain = {key: values[key] for key in settings}
    return head + to_toml({"model": model, model: plain}) + f"\n[{model}.{FOUND}]\n" + to_toml(found)
