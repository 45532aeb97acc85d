import tomllib

import pytest

from asgat.errors import AsgatError
from asgat.recipe import check_recipe, load_config, read_recipe_file
from asgat.tuning.recipe_file import recipe_text

FOUND = {"command": "asgat tune texas", "seed": 0, "trials": 3, "val_micro_f1": 0.8}


def test_a_recipe_can_be_written_and_read(tmp_path):
    settings = {"lr": 0.02, "k": None, "filter_hidden": (5, 6), "mix": True, "elu": "none"}
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text("asgat-plus", settings, FOUND))
    recipe = read_recipe_file(path)
    assert recipe["model"] == "asgat-plus"
    assert recipe["asgat-plus"]["found"] == FOUND
    config = load_config("texas", "asgat-plus", file=path)
    assert {key: getattr(config, key) for key in settings} == settings
    check_recipe(tomllib.loads(path.read_text()), "here")


def test_unknown_settings_are_refused():
    with pytest.raises(AsgatError, match="gcn has no setting 'heads'"):
        recipe_text("gcn", {"heads": 3}, FOUND)
