"""The options of a user's graph, and commands that take such a graph, a run directory or a data set's name."""

import inspect
import json
import tomllib
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from tests.cli.test_fit import GIVEN, write_graph
from typer.testing import CliRunner

from asgat.cli import fit, train, tune
from asgat.cli.graph_options import GraphOptions, as_run_directory, load_source, takes_graph
from asgat.errors import AsgatError

FILES = GIVEN[1:]
QUICK = ["--set", "epochs=4", "--set", "hidden=4", "--set", "max_restarts=0"]


def rows_of(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))["rows"]


def test_a_command_gets_the_options_in_place_of_its_graph():
    app, got = typer.Typer(), []

    @app.command()
    @takes_graph(panel="Graph")
    def show(name: str, graph: GraphOptions, more: Annotated[int, typer.Option()] = 1) -> None:
        got.append((name, graph, more))

    assert list(inspect.signature(show).parameters) == ["name", *vars(GraphOptions()), "more"]
    words = ["it", "--edges", "e.csv", "--ignore", "a", "--ignore", "b", "--directed", "--metric", "macro-f1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    graph = GraphOptions(edges=Path("e.csv"), ignore=["a", "b"], directed=True, metric="macro_f1")
    assert got == [("it", graph, 1)]
    assert graph.words() == ["--edges", "e.csv", "--ignore", "a", "--ignore", "b", "--directed", "--metric", "macro_f1"]
    assert "Graph" in CliRunner().invoke(app, ["--help"]).output


def test_all_commands_have_the_options_of_fit():
    own = set(vars(GraphOptions()))
    for command in (fit.fit, train.compare, tune.tune):
        assert own <= set(inspect.signature(command).parameters)


def test_run_directories_are_named_after_the_folder_of_the_data():
    assert GraphOptions(edges=Path("data/web.npz")).data_name() == "data-web"
    assert GraphOptions(edges=Path("/web.npz")).data_name() == "web"
    assert GraphOptions(edges=Path("/x/reed/e.csv"), nodes=Path("/x/reed/nodes.csv")).data_name() == "reed"


def test_what_is_a_run_directory(place):
    (place / "mine").mkdir()
    (place / "texas").mkdir()
    (place / "file").write_text("")
    assert as_run_directory("mine") == Path("mine")
    assert as_run_directory(None) is as_run_directory("texas") is as_run_directory("nosuch") is None
    assert as_run_directory("file") is as_run_directory("nul\0") is None
    with pytest.raises(AsgatError, match="There is no run directory 'runs/mine'"):
        as_run_directory("runs/mine")


@pytest.mark.parametrize("command", [["compare"], ["tune"]], ids=" ".join)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "No data was given: name a data set of `asgat datasets`, or give --edges and --label."),
        (["karate", "--edges", "e.csv"], "Both 'karate' and --edges were given"),
        (["karate", "--label", "kind"], "Both 'karate' and --label were given"),
        (["karate", "--metric", "macro_f1"], "--metric is for your own graph"),
        (["--nodes", "n.csv", "--label", "kind"], "--edges is missing"),
        (["--edges", "e.csv", "--nodes", "n.csv"], "--label is missing"),
        (["--edges", "e.csv", "--label", "kind", "--protocol", "full"], "--protocol is for benchmark data sets"),
        (["--edges", "e.csv", "--label", "kind"], "e.csv cannot be read: No such file"),
        (["runs/nosuch"], "There is no run directory 'runs/nosuch'."),
        (["."], "is not a run directory with a model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence(refused, command, arguments, words):
    if command == ["tune"]:
        pytest.importorskip("optuna")
    assert words in refused(*command, *arguments)


def test_fit_needs_edges_and_labels(refused):
    assert "--edges is missing" in refused("fit")
    assert "--label is missing" in refused("fit", "--edges", "e.csv")


def test_compare_on_files_and_on_a_run_directory(asgat, place):
    write_graph(hidden=0.0)
    models = ["--models", "gcn,asgat-plus"]
    code, output, errors = asgat("compare", *FILES, *models, "--splits", "0-1", *QUICK, "--json", "files.json")
    assert code == 0, errors
    assert "Column same: left out" in output, "what was changed is said"
    rows = rows_of("files.json")
    assert [row["model"] for row in rows] == ["gcn", "asgat-plus"]
    assert all(len(row["rows"]) == 2 for row in rows)
    name = place.name
    assert (place / "runs" / f"compare-{name}-gcn-seed0-runs0-1" / "result.json").is_file()
    assert (place / "runs" / f"{name}-comparison.png").is_file()

    assert asgat(*GIVEN, "--model", "gcn", *QUICK, "--out", "fitted", "--json", "fitted.json")[0] == 0
    assert rows[0]["rows"][0]["micro_f1"] == rows_of("fitted.json")[0]["micro_f1"], "the same split, seed and settings"

    shared = [*models, "--splits", "0-1", *QUICK, "--out", "again", "--json", "r.json"]
    code, _, errors = asgat("compare", "fitted", *shared)
    assert code == 0, errors
    again = rows_of("r.json")
    for one, other in zip(rows, again, strict=True):
        assert one["rows"][0]["val_loss"] == other["rows"][0]["val_loss"], "the first split is that of the run"
        assert one["rows"][1]["val_loss"] != other["rows"][1]["val_loss"]

    compared = f"runs/compare-{name}-asgat-plus-seed0-runs0-1"
    for command in (["predict", compared], ["explain", compared, "--node", "n7"], ["report", compared]):
        code, _, errors = asgat(*command)
        assert code == 0, errors
    Path(compared, "graph.npz").unlink()
    code, _, errors = asgat("compare", compared, *models)
    assert code == 2
    assert "has no graph.npz, the graph its model was trained on" in errors


def test_a_metric_decides(asgat):
    write_graph(hidden=0.0)
    shared = ["--models", "mlp", "--splits", "0", *QUICK]
    assert asgat("compare", *FILES, *shared, "--metric", "roc-auc", "--json", "r.json")[0] == 0
    assert rows_of("r.json")[0]["roc_auc"]["mean"] > 0


def test_a_directed_graph_is_undirected_for_models_that_need_it(asgat):
    write_graph(hidden=0.0)
    shared = ["--directed", "--models", "gcn,asgat-deep", "--splits", "0", *QUICK, "--set", "heads=2"]
    code, output, errors = asgat("compare", *FILES, *shared, "--json", "r.json")
    assert code == 0, errors
    assert output.count("cannot use the direction of edges") == 1
    assert "gcn cannot use the direction of edges: it is trained on the undirected graph." in output


def test_tune_on_files_writes_a_recipe_that_fit_takes(asgat, place):
    pytest.importorskip("optuna")
    write_graph(hidden=0.0)
    search = ["tune", *FILES, "--model", "gcn", "--splits", "0", "--set", "epochs=8", "--out", "search"]
    code, output, errors = asgat(*search, "--trials", 3)
    assert code == 0, errors
    assert "Best trials" in output
    recipe = tomllib.loads((place / "search" / "recipe.toml").read_text())
    settings, log = recipe["gcn"], (place / "search" / "trials.jsonl").read_text().splitlines()
    found = settings.pop("found")
    best = max((json.loads(line) for line in log), key=lambda row: row["value"])
    assert recipe["model"] == "gcn"
    assert settings == best["settings"]
    assert settings["normalize_features"] is False
    assert found["command"] == (
        "asgat tune --edges edges.csv --label kind --nodes nodes.csv --model gcn --trials 3 --seed 0 --splits 0 "
        "--set epochs=8"
    )
    assert found["dataset"] == place.name
    assert found["val_micro_f1"] == pytest.approx(best["value"], abs=1e-6)
    assert np.datetime64(found["date"]) <= np.datetime64("today") + 1

    code, _, errors = asgat(*GIVEN, "--recipe", "search/recipe.toml", "--out", "fitted", "--json", "fitted.json")
    assert code == 0, errors
    fitted, written = json.loads(Path("fitted.json").read_text()), tomllib.loads(Path("fitted/config.toml").read_text())
    assert fitted["rows"][0]["val_score"] == pytest.approx(best["value"], abs=1e-6), "the trial, trained again"
    assert written["model"] == "gcn"
    assert written["data"] == found["data"]
    assert settings.items() <= written["config"].items()

    write_graph(hidden=0.0, seed=1)
    code, _, errors = asgat(*search, "--trials", 4)
    assert code == 2
    assert "was made with other settings (data)" in errors, "a study of other data does not go on"


def test_tune_on_a_run_directory_takes_its_model(asgat, place):
    pytest.importorskip("optuna")
    write_graph()
    assert asgat(*GIVEN, "--model", "mlp", *QUICK, "--out", "fitted")[0] == 0
    code, _, errors = asgat("tune", "fitted", "--trials", 1, "--splits", "0", *QUICK)
    assert code == 0, errors
    recipe = tomllib.loads((place / "runs" / f"tune-{place.name}-mlp-seed0-runs0" / "recipe.toml").read_text())
    assert recipe["model"] == "mlp"
    assert recipe["mlp"]["found"]["command"].startswith("asgat tune fitted --model mlp")


def test_a_graph_with_the_name_of_a_data_set_gets_no_recipe(place):
    (place / "texas").mkdir()
    write_graph()
    for name in ("nodes.csv", "edges.csv"):
        Path(name).rename(place / "texas" / name)
    graph = GraphOptions(Path("texas/edges.csv"), "kind", Path("texas/nodes.csv"))
    source, named = load_source(None, graph), load_source("karate", GraphOptions())
    assert source.name == source.dataset.name == "texas"
    assert source.user is not None
    assert source.config("gcn", {}) == source.user.config("gcn")
    assert source.words == ["--edges", "texas/edges.csv", "--label", "kind", "--nodes", "texas/nodes.csv"]
    assert (named.words, named.user, named.default_model) == (["karate"], None, "asgat-cheb")
