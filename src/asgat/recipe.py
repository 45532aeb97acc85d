"""Recipes: the settings each data set is trained with, as data."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from asgat.config import TrainConfig
from asgat.errors import AsgatError, shown
from asgat.files.atomic import read_toml
from asgat.nn.registry import ELSEWHERE, MODELS, make_config, model_spec

SHARED = "all"
FOUND = "found"
RUN_SETTINGS = "config.toml"  # in a run directory


def read_recipe(dataset: str) -> dict[str, Any]:
    """The recipe of a data set with every key checked; empty if there is none.

    A recipe names the ``model`` that is trained by default, the settings ``all`` models share, and a table of settings
    per model. ``found`` in a model's table says how they were chosen: command or search, seed and validation score.
    """
    recipes = {file.name: file for file in (files("asgat") / "recipes").iterdir()}
    file = recipes.get(f"{dataset}.toml")  # looked up, never joined: a name must not lead to a file elsewhere
    if file is None:
        return {}
    recipe = tomllib.loads(file.read_text(encoding="utf-8"))
    check_recipe(recipe, f"{dataset}.toml")
    return recipe


def check_recipe(recipe: dict[str, Any], name: str) -> None:
    """Raises an error that names the first fault of a recipe."""
    for key, value in recipe.items():
        if key == "model":
            if not isinstance(value, str) or value not in MODELS:
                raise AsgatError(f"Recipe {name}: unknown model {shown(value)}.")
        elif key not in (SHARED, *MODELS, *ELSEWHERE):
            raise AsgatError(f"Recipe {name}: unknown entry {shown(key)}; expected model, all, or a model's name.")
        elif not isinstance(value, dict):
            raise AsgatError(f"Recipe {name}: {key} must be a table of settings.")
    for model in MODELS:
        try:
            _config(recipe, model, {})
        except AsgatError as error:
            raise AsgatError(f"Recipe {name}, {model}: {error}") from None


def read_recipe_file(path: Path) -> dict[str, Any]:
    """A recipe from a user's file, or the settings of a run directory, with every key checked."""
    recipe = read_toml(path / RUN_SETTINGS if path.is_dir() else path)
    if path.is_dir():
        try:
            recipe = {"model": recipe["model"], str(recipe["model"]): recipe["config"]}
        except KeyError as error:
            raise AsgatError(f"{path / RUN_SETTINGS} is not of a run: it has no {error}.") from None
    check_recipe(recipe, str(path))
    return recipe


def read_settings(path: Path, model: str | None = None) -> tuple[str, dict[str, Any]]:
    """A model and its settings in a user's recipe: the model the recipe names, unless another is given."""
    recipe = read_recipe_file(path)
    model = model or recipe.get("model")
    if model is None:
        raise AsgatError(f"Recipe {path} names no model; choose one with --model.")
    model_spec(model)
    if model not in recipe:
        held = ", ".join(name for name in recipe if name in MODELS) or "those of no model"
        raise AsgatError(f"Recipe {path} has no settings of {model}; it has {held}.")
    return model, _settings(recipe, model)


def default_model(dataset: str, file: Path | None = None) -> str:
    recipe = read_recipe_file(file) if file else read_recipe(dataset)
    return str(recipe.get("model", "asgat-cheb"))


def load_config(
    dataset: str, model: str, changes: dict[str, Any] | None = None, file: Path | None = None
) -> TrainConfig:
    """A model's settings for a data set: its defaults, then those of the recipe (or recipe file), then the changes."""
    return _config(read_recipe_file(file) if file else read_recipe(dataset), model, changes or {})


def _config(recipe: dict[str, Any], model: str, changes: dict[str, Any]) -> TrainConfig:
    return make_config(model, **{**_settings(recipe, model), **changes})


def _settings(recipe: dict[str, Any], model: str) -> dict[str, Any]:
    own = {key: value for key, value in recipe.get(model, {}).items() if key != FOUND}
    return {**recipe.get(SHARED, {}), **own}
