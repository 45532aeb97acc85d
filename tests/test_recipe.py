import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from typer.main import get_command

from asgat import recipe as recipe_module
from asgat.config import ASGATConfig, TrainConfig
from asgat.data import dataset_names
from asgat.errors import AsgatError
from asgat.files.atomic import to_toml
from asgat.nn.registry import MODELS, make_config
from asgat.recipe import check_recipe, default_model, load_config, read_recipe, read_recipe_file, read_settings

ROOT = Path(__file__).resolve().parents[1]
RECIPES = sorted(file.name for file in (files("asgat") / "recipes").iterdir() if file.name.endswith(".toml"))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A function that stores a recipe under a name, in place of the package's own."""
    (tmp_path / "recipes").mkdir()
    monkeypatch.setattr(recipe_module, "files", lambda _: tmp_path)

    def keep(name, text):
        (tmp_path / "recipes" / f"{name}.toml").write_text(text, encoding="utf-8")

    return keep


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_sound_and_belongs_to_a_data_set(name):
    dataset = name.removesuffix(".toml")
    assert dataset in dataset_names()
    recipe = read_recipe(dataset)  # checks it
    assert recipe
    assert default_model(dataset) == recipe.get("model", "asgat-cheb")
    for model in MODELS:
        config = load_config(dataset, model)
        expected = {**recipe.get("all", {}), **recipe.get(model, {})}
        expected.pop("found", None)
        written = config.to_dict()
        assert {key: written[key] for key in expected} == expected


@pytest.mark.parametrize("name", RECIPES)
def test_a_command_that_found_settings_can_still_be_run(name):
    """It has the options. Searches of scripts that are not kept have no command."""
    from asgat.cli.app import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for model, settings in read_recipe(name.removesuffix(".toml")).items():
        found = settings.get("found", {}) if isinstance(settings, dict) else {}
        program, *words = shlex.split(found.get("command", "none"))
        assert program in ("none", "asgat"), f"{name}, {model}: {program}"
        if program == "asgat":
            known = {option for part in commands[words[0]].params for option in part.opts}
            assert {word for word in words if word.startswith("--")} <= known


def test_some_recipes_name_a_command():
    assert "csbm.toml" in RECIPES, "the default data set"
    assert len([name for name in RECIPES if "command" in (files("asgat") / "recipes" / name).read_text()]) > 3


@pytest.mark.parametrize("dataset", dataset_names())
def test_every_data_set_has_a_default_model_and_settings(dataset):
    model = default_model(dataset)
    assert model in MODELS
    assert isinstance(load_config(dataset, model), MODELS[model].config)


def test_no_recipe_means_the_models_defaults(kept):
    assert read_recipe("karate") == {}
    assert default_model("karate") == "asgat-cheb"
    assert load_config("karate", "asgat-cheb") == make_config("asgat-cheb") == ASGATConfig()
    assert load_config("karate", "mlp") == TrainConfig()


def test_precedence(kept):
    kept(
        "karate",
        """
        model = "gcn"
        [all]
        lr = 0.1
        epochs = 7
        hidden = 3
        [gcn]
        epochs = 8
        hidden = 4
        [asgat-cheb]
        k = "none"
        """,
    )
    assert default_model("karate") == "gcn"
    config = load_config("karate", "gcn", {"hidden": 5})
    assert (config.patience, config.lr, config.epochs, config.hidden) == (TrainConfig().patience, 0.1, 8, 5)
    assert load_config("karate", "mlp") == TrainConfig(lr=0.1, epochs=7, hidden=3)
    assert load_config("karate", "asgat-cheb") == ASGATConfig(lr=0.1, epochs=7, hidden=3, k=None)
    assert load_config("karate", "asgat-cheb", {"k": 2}) == ASGATConfig(lr=0.1, epochs=7, hidden=3, k=2)


def test_recipes_change_a_models_own_defaults(kept):
    kept("karate", "[asgat-plus]\nroot = false")
    assert make_config("asgat-plus").to_dict()["root"] is True
    assert load_config("karate", "asgat-plus").to_dict()["root"] is False
    assert load_config("karate", "asgat-plus", {"root": True}).to_dict()["root"] is True


def test_how_it_was_found_is_not_a_setting(kept):
    kept("karate", '[mlp]\nlr = 0.5\n[mlp.found]\ncommand = "a search"\nseed = 1\nval_micro_f1 = 0.9')
    assert load_config("karate", "mlp") == TrainConfig(lr=0.5)


@pytest.mark.parametrize(
    ("recipe", "named"),
    [
        ({"model": "asgat-chebb"}, ["asgat-chebb"]),
        ({"model": ["mlp"]}, ["mlp"]),
        ({"model": 3}, ["3"]),
        ({"asgat-chebb": {}}, ["asgat-chebb"]),
        ({"lr": 0.1}, ["lr"]),
        ({"mlp": 3}, ["mlp", "table"]),
        ({"all": [1]}, ["all", "table"]),
        ({"mlp": {"heads": 3}}, ["mlp", "heads"]),
        ({"all": {"heads": 3}}, ["mlp", "heads"]),  # all must suit all models
        ({"asgat-cheb": {"heds": 3}}, ["asgat-cheb", "'heds'", "Did you mean 'heads'"]),
        ({"asgat-cheb": {"heads": 0}}, ["asgat-cheb", "heads must be at least 1", "0"]),
        ({"asgat-cheb": {"heads": "8"}}, ["asgat-cheb", "heads must be a whole number", "'8'"]),
        ({"asgat-cheb": {"heads": 8.0}}, ["heads must be a whole number"]),
        ({"asgat-cheb": {"root": True}}, ["asgat-cheb fixes root"]),
        ({"all": {"dropout": 1.0}}, ["dropout must be below 1"]),
        ({"all": {"normalize_features": 1}}, ["normalize_features must be true or false"]),
        ({"all": {"found": {}}}, ["found"]),
        ({"mlp": {"self_loops": "maybe"}}, ["self_loops", "'maybe'"]),
        ({"asgat-cheb": {"damping": True}}, ["asgat-cheb", "damping is no longer a setting"]),
    ],
)
def test_what_is_wrong_is_named(recipe, named):
    with pytest.raises(AsgatError, match=r"^Recipe some\.toml") as caught:
        check_recipe(recipe, "some.toml")
    for part in named:
        assert part in str(caught.value)


def test_a_bad_recipe_is_reported_when_it_is_read(kept):
    kept("karate", "[mlp]\nepoch = 3")
    for ask in (read_recipe, default_model, lambda name: load_config(name, "gcn")):
        with pytest.raises(AsgatError, match=r"Recipe karate\.toml, mlp:.*'epoch'.*Did you mean 'epochs'"):
            ask("karate")


def test_a_good_recipe_passes():
    check_recipe({}, "empty.toml")
    check_recipe({"model": "mlp", "all": {"lr": 1}, "mlp": {"hidden": 2, "found": {"seed": 3}}}, "good.toml")
    check_recipe({"asgat-cheb": {"damping": False, "numerator": 18}}, "written by version 0.1.toml")


def test_changes_are_checked_as_well():
    with pytest.raises(AsgatError, match="k must be at least 1, but is 0"):
        load_config("csbm", "asgat-cheb", {"k": 0})
    with pytest.raises(AsgatError, match="Unknown model 'asgat'"):
        load_config("csbm", "asgat")


def test_a_user_s_file_replaces_the_recipe(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('model = "gcn"\n[all]\nlr = 0.25\n[gcn]\nhidden = 7\n[gcn.found]\nseed = 1\n')
    assert default_model("texas", path) == "gcn"
    config = load_config("texas", "gcn", {"dropout": 0.25}, path)
    assert (config.lr, config.hidden, config.dropout) == (0.25, 7, 0.25)
    assert config.weight_decay == make_config("gcn").weight_decay, "not the recipe of the data set"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lr = 1", "unknown entry 'lr'"),
        ("[gcn]\nheads = 2", "gcn has no setting 'heads'"),
        ("[gcn", "cannot be read as"),
        ("[asgat-cheb]\norder = 20000", "order must be at most 1000, but is 20000"),
        (".".join("a" * 100_000) + " = 1", "a key has more than 32 parts"),
    ],
)
def test_a_file_that_is_not_a_recipe_is_named(text, words, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(AsgatError, match=f"mine.toml.*{words}"):
        read_recipe_file(path)


def test_the_model_and_settings_of_a_user_s_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('model = "gcn"\n[all]\nlr = 0.25\n[gcn]\nhidden = 7\n[gcn.found]\nseed = 1\n[mlp]\nlr = 0.5\n')
    assert read_settings(path) == ("gcn", {"lr": 0.25, "hidden": 7})
    assert read_settings(path, "mlp") == ("mlp", {"lr": 0.5})
    with pytest.raises(AsgatError, match=r"mine.toml has no settings of gat; it has gcn, mlp"):
        read_settings(path, "gat")
    with pytest.raises(AsgatError, match="Unknown model 'gta'"):
        read_settings(path, "gta")
    path.write_text("[all]\nlr = 0.25\n")
    with pytest.raises(AsgatError, match=r"mine.toml names no model; choose one with --model"):
        read_settings(path)
    with pytest.raises(AsgatError, match="has no settings of mlp; it has those of no model"):
        read_settings(path, "mlp")


def test_a_run_directory_is_a_recipe_of_its_settings(tmp_path):
    config = make_config("asgat-plus", k=None, hidden=5, filter_hidden=(3, 4))
    path = tmp_path / "config.toml"
    path.write_text(to_toml({"dataset": "mine", "model": "asgat-plus", "seed": 0, "config": config.to_dict()}))
    model, settings = read_settings(tmp_path)
    assert make_config(model, **settings) == config
    path.write_text('model = "gcn"\n')
    with pytest.raises(AsgatError, match=r"config.toml is not of a run: it has no 'config'"):
        read_settings(tmp_path)
    path.write_text("model = 3\nconfig = 4\n")
    with pytest.raises(AsgatError, match="unknown model 3"):
        read_settings(tmp_path)
    path.unlink()
    with pytest.raises(AsgatError, match=r"config.toml cannot be read"):
        read_settings(tmp_path)
