"""The estimator: it learns, predicts other graphs, survives saving, and scikit-learn knows how to use it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from tests.leaderboard.conftest import make_small_field

from asgat.data import contextual_sbm, load_dataset
from asgat.errors import AsgatError
from asgat.estimator import classifier, trained_run
from asgat.estimator.classifier import ASGATClassifier, same_graph
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.trained_run import load_run
from asgat.graph import Graph
from asgat.nn.registry import make_config, model_spec
from asgat.tabular.column import Column
from asgat.tabular.conversions import as_user_graph
from asgat.training.inputs import make_inputs
from asgat.training.run_directory import RunDirectory
from asgat.training.runner import Callbacks, step_bytes

QUICK: dict[str, Any] = {"epochs": 25, "heads": 2, "hidden": 8, "k": 4, "order": 4, "dropout": 0.2, "lr": 0.05}
ONE_EPOCH: dict[str, Any] = {**QUICK, "epochs": 1}


@pytest.fixture(scope="module")
def blocks():
    """A graph with informative features."""
    return contextual_sbm(num_nodes=160, signal=0.6, num_features=8, seed=1)


@pytest.fixture(scope="module")
def user_graph(blocks):
    return as_user_graph(blocks.graph, blocks.x)


@pytest.fixture(scope="module")
def names(blocks):
    return np.array(["low", "high"])[blocks.y]


@pytest.fixture(scope="module")
def fitted(user_graph, names):
    return ASGATClassifier(**QUICK).fit(user_graph, names, mask=np.arange(100))


def test_it_learns(fitted, user_graph, names):
    assert fitted.classes_.tolist() == ["high", "low"]
    probability = fitted.predict_proba()
    assert probability.shape == (160, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (fitted.predict() == fitted.classes_[probability.argmax(axis=1)]).all()
    outside = np.arange(100, 160)
    accuracy = np.mean(fitted.predict()[outside] == names[outside])
    assert accuracy > 0.75
    assert fitted.score() == pytest.approx(accuracy)
    assert fitted.score(user_graph, names, mask=outside) == pytest.approx(accuracy)
    assert fitted.score(user_graph[outside], names[outside]) == pytest.approx(accuracy)


def test_labels_outside_the_mask_are_never_seen(user_graph, names):
    other = names.copy()
    other[100:] = "low"
    a = ASGATClassifier(**QUICK).fit(user_graph, names, mask=np.arange(100)).predict_proba()
    b = ASGATClassifier(**QUICK).fit(user_graph, other, mask=np.arange(100)).predict_proba()
    np.testing.assert_array_equal(a, b)


def test_predictions_are_the_same_after_saving(fitted, user_graph, tmp_path):
    fitted.save_pretrained(tmp_path / "run")
    again = ASGATClassifier.from_pretrained(tmp_path / "run")
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    np.testing.assert_array_equal(again.predict_proba(user_graph), fitted.predict_proba())
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.config_ == fitted.config_
    assert again.health_ == fitted.health_
    again.save_pretrained(tmp_path / "copy")
    copy = ASGATClassifier.from_pretrained(tmp_path / "copy")
    np.testing.assert_array_equal(copy.predict_proba(), fitted.predict_proba())


def test_predicting_another_graph_builds_one_table(fitted, user_graph, blocks, tmp_path, monkeypatch):
    fitted.save_pretrained(tmp_path)
    built = []

    def counted(dataset, *rest):
        built.append(dataset.num_nodes)
        return make_inputs(dataset, *rest)

    for module in (classifier, trained_run):
        monkeypatch.setattr(module, "make_inputs", counted)
    again = ASGATClassifier.from_pretrained(tmp_path)
    assert built == []
    part = np.arange(80)
    other = as_user_graph(Graph.from_scipy(blocks.graph.adjacency[part][:, part]), blocks.x[part])
    again.predict(other)
    assert built == [80]
    again.predict()
    again.predict(user_graph)
    assert built == [80, 160], "that of the fitted graph is built once, when it is needed"


def test_a_model_that_gives_nan_is_refused(fitted, tmp_path):
    fitted.save_pretrained(tmp_path)
    again = ASGATClassifier.from_pretrained(tmp_path)
    with torch.no_grad():
        next(again.module_.parameters()).fill_(float("nan"))
    with pytest.raises(AsgatError, match="gives NaN or infinity"):
        again.predict()


def test_parameters_do_not_depend_on_the_number_of_nodes(blocks):
    sizes = []
    for nodes in (60, 160):
        data = contextual_sbm(num_nodes=nodes, num_features=8)
        model = ASGATClassifier(**{**QUICK, "epochs": 1}).fit(as_user_graph(data.graph, data.x), data.y)
        sizes.append({name: tuple(value.shape) for name, value in model.module_.state_dict().items()})
    assert sizes[0] == sizes[1]


def test_one_half_of_a_graph_predicts_the_other(blocks):
    """Two halves without a node in common."""
    a, b = np.arange(80), np.arange(80, 160)
    halves = [as_user_graph(Graph.from_scipy(blocks.graph.adjacency[part][:, part]), blocks.x[part]) for part in (a, b)]
    model = ASGATClassifier(**QUICK).fit(halves[0], blocks.y[a])
    assert model.score(halves[1], blocks.y[b]) > 0.7
    assert model.predict(halves[1]).shape == (80,)


def test_renumbering_the_nodes_renumbers_the_answers(fitted, blocks):
    """With weights that differ: of nodes with equal scores it is the number that decides which is attended to."""
    rng = np.random.default_rng(0)
    ends = blocks.graph.edge_index()
    graph = Graph.from_edges(ends, 160, rng.uniform(0.5, 2.0, ends.shape[1]))
    order = rng.permutation(160)
    moved = as_user_graph(Graph.from_scipy(graph.adjacency[order][:, order]), blocks.x[order])
    answers = fitted.predict_proba(as_user_graph(graph, blocks.x))
    np.testing.assert_allclose(fitted.predict_proba(moved), answers[order], atol=1e-4)


def test_cross_validation(user_graph, blocks):
    model = ASGATClassifier(**{**QUICK, "epochs": 15})
    scores = cross_val_score(model, user_graph, blocks.y, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.shape == (3,)
    assert scores.mean() > 0.65


def test_a_search_over_settings(user_graph, blocks):
    search = GridSearchCV(ASGATClassifier(**{**QUICK, "epochs": 5}), {"k": [2, 3]}, cv=2)
    search.fit(user_graph, blocks.y)
    assert search.best_params_["k"] in (2, 3)
    assert len(search.predict(user_graph)) == 160


@pytest.mark.parametrize("library", ["pandas", "networkx", "pyg"])
def test_scikit_learns_tools_on_graphs_of_other_libraries(library, blocks, names):
    words = {"kind": [name if node % 8 else None for node, name in enumerate(names.tolist())]}
    if library == "pyg":
        data = of_pyg(blocks, blocks.x, {})
        data.y[::8] = -1
        nodes = as_user_graph(data).labelled
    else:
        make = {"pandas": of_pandas, "networkx": of_networkx}[library]
        nodes = as_user_graph(make(blocks, blocks.x, words), label="kind").labelled
    assert len(nodes) == 140
    model = ASGATClassifier(**{**QUICK, "epochs": 12})
    scores = cross_val_score(model, nodes, nodes.y, cv=3, scoring="f1_macro", error_score="raise")
    assert scores.mean() > 0.6
    search = GridSearchCV(model, {"k": [2, 4]}, cv=2, error_score="raise").fit(nodes, nodes.y)
    assert len(search.predict(nodes)) == 140
    train, test = train_test_split(nodes, stratify=nodes.y, random_state=0)
    fitted = clone(search.best_estimator_).fit(train)
    assert fitted.score(test) == pytest.approx(np.mean(fitted.predict(test) == test.y))
    assert fitted.score(test) > 0.6


def test_a_fold_never_sees_the_labels_of_the_others(user_graph, names):
    """Other labels there, even of a class more, change nothing, whether y is given or held by the graph."""
    train, other = np.arange(100), names.copy()
    other[100:] = "third"
    held = [
        replace(user_graph, label=Column.of_texts("kind", y.tolist()), columns={"label": "kind"})[train]
        for y in (names, other)
    ]
    models = [ASGATClassifier(**ONE_EPOCH).fit(nodes) for nodes in held]
    models.append(ASGATClassifier(**ONE_EPOCH).fit(user_graph[train], names[train]))
    for model in models:
        assert model.classes_.tolist() == ["high", "low"]
        assert not len(model.dataset_.splits[0].test)
        np.testing.assert_array_equal(model.predict_proba(), models[0].predict_proba())


def test_columns_are_counted_and_named(blocks, tmp_path):
    edges, nodes = of_pandas(blocks, blocks.x, {"kind": np.array(["a", "b"])[blocks.y]})
    model = ASGATClassifier(**ONE_EPOCH).fit((edges, nodes.rename(columns={"x0": "size"})), y="kind")
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == ["size", *(f"x{i}" for i in range(1, 8))]
    model.save_pretrained(tmp_path)
    again = ASGATClassifier.from_pretrained(tmp_path)
    assert (again.n_features_in_, again.feature_names_in_[0]) == (8, "size")
    model.fit(blocks.graph, blocks.y, x=blocks.x)
    assert model.n_features_in_ == 8
    assert not hasattr(model, "feature_names_in_"), "those of an array have none"


@pytest.mark.parametrize("call", ["predict", "predict_proba", "score"])
def test_before_fit_every_method_says_so(call, user_graph, tmp_path):
    for graph in ((), (user_graph,)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(ASGATClassifier(), call)(*graph)
    with pytest.raises(NotFittedError):
        ASGATClassifier().save_pretrained(tmp_path)
    with pytest.raises(NotFittedError):
        ASGATClassifier().predict_with_notes(user_graph)


def test_predicting_changes_nothing(fitted, user_graph, blocks):
    before = dict(vars(fitted))
    fitted.predict(as_user_graph(blocks.graph, np.where(blocks.x > 2, np.nan, blocks.x)))
    assert vars(fitted) == before


def test_notes_of_a_prediction(fitted, blocks):
    holes = np.where(np.arange(160)[:, None] == 3, np.nan, blocks.x)
    probability, notes = fitted.predict_with_notes(as_user_graph(blocks.graph, holes))
    assert probability.shape == (160, 2)
    assert "'x0' has no value at 1 nodes" in notes[0]


def test_it_can_be_cloned():
    model = ASGATClassifier(k=3, settings={"elu": "last"})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(k=5).k == 5


def test_the_same_seed_gives_the_same_model(user_graph, names):
    quick = {**QUICK, "epochs": 4}

    def fit(**seed):
        return ASGATClassifier(**quick, **seed).fit(user_graph, names).predict_proba()

    first = fit(random_state=3)
    np.testing.assert_array_equal(first, fit(random_state=3))
    np.testing.assert_array_equal(first, fit(seed=3), "the older name")
    np.testing.assert_array_equal(fit(), fit(random_state=0))
    assert not np.array_equal(first, fit(random_state=4))


def test_a_random_state_that_is_no_number_draws_one_in_every_fit(user_graph, names, tmp_path):
    model = ASGATClassifier(**ONE_EPOCH, random_state=np.random.RandomState(0))
    first = model.fit(user_graph, names).predict_proba()
    assert model.seed_ == np.random.RandomState(0).randint(2**31 - 1)
    assert not np.array_equal(model.fit(user_graph, names).predict_proba(), first)
    again = ASGATClassifier(**ONE_EPOCH, random_state=np.random.RandomState(0)).fit(user_graph, names)
    np.testing.assert_array_equal(again.predict_proba(), first)
    again.save_pretrained(tmp_path)
    assert ASGATClassifier.from_pretrained(tmp_path).random_state == again.seed_
    drawn = {ASGATClassifier(**ONE_EPOCH, random_state=None).fit(user_graph, names).seed_ for _ in range(2)}
    assert len(drawn) == 2


def test_verbose_prints_epochs_and_scores(user_graph, names, capsys, monkeypatch):
    ASGATClassifier(**ONE_EPOCH).fit(user_graph, names)
    assert capsys.readouterr().out == ""
    model = ASGATClassifier(**ONE_EPOCH, verbose=2).fit(user_graph, names)
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch ")
    assert last == f"val score {model.result_['rows'][0]['val_score']:.4f}"
    make_small_field(monkeypatch)
    board = ASGATClassifier(preset="quick", verbose=1).fit(user_graph, names).leaderboard_
    printed = capsys.readouterr().out
    assert printed.startswith("first epochs: 0 of ")
    assert printed.endswith(f"{board}\n")


def test_settings_come_from_the_caller_then_from_the_graph(user_graph, names):
    free = ASGATClassifier(epochs=1, heads=1, settings={"hidden": 4}).fit(user_graph, names)
    advised = {advice.setting: advice.value for advice in free.health_.advice}
    chosen = free.config_.to_dict()
    assert (chosen["k"], chosen["order"], chosen["hidden"]) == (advised["k"], advised["order"], 4)
    assert ASGATClassifier("mlp", epochs=1).fit(user_graph, names).config_.epochs == 1


def test_the_memory_of_a_step_is_reported_before_training(user_graph, names):
    encoded = encode_user_graph(user_graph, names, np.arange(100))
    needed: list[int] = []
    estimator = ASGATClassifier(**QUICK).fit_encoded(encoded, callbacks=Callbacks(built=needed.append))
    assert needed == [step_bytes(encoded.dataset, estimator.config_, torch.device("cpu"))]
    assert needed[0] > 0


def test_pyg_and_networkx():
    networkx = pytest.importorskip("networkx")
    club = networkx.karate_club_graph()
    truth = [club.nodes[node]["club"] for node in club]
    plain = networkx.Graph(club.edges)
    assert set(ASGATClassifier(**QUICK).fit(plain, truth).predict()) <= {"Mr. Hi", "Officer"}
    data = load_dataset("karate").to_pyg()
    model = ASGATClassifier(**QUICK).fit(data)
    assert model.predict(data).dtype.kind == "i"
    assert model.dataset_.splits[0].train.tolist() == data.train_mask[:, 0].nonzero().squeeze(1).tolist()


@pytest.fixture(scope="module")
def linkx(user_graph, names):
    return ASGATClassifier("linkx", epochs=20).fit(user_graph, names, mask=np.arange(100))


def in_order(order, ids, blocks):
    """The graph with its rows in this order, and with ids."""
    moved = as_user_graph(Graph.from_scipy(blocks.graph.adjacency[order][:, order]), blocks.x[order])
    return replace(moved, ids=[ids[row] for row in order])


def test_nodes_are_matched_by_id_where_weights_belong_to_them(user_graph, names, blocks, linkx, tmp_path):
    ids = [f"node {i}" for i in range(160)]
    named = replace(user_graph, ids=ids)
    model = ASGATClassifier("linkx", epochs=20).fit(named, names, mask=np.arange(100))
    np.testing.assert_array_equal(model.predict_proba(), linkx.predict_proba())
    model.save_pretrained(tmp_path)
    order = np.random.default_rng(0).permutation(160)
    moved = in_order(order, ids, blocks)
    for same in (model, ASGATClassifier.from_pretrained(tmp_path)):
        np.testing.assert_array_equal(same.predict_proba(moved), same.predict_proba()[order])
        np.testing.assert_array_equal(same.predict(moved[[5, 3]]), same.predict()[order[[5, 3]]])
        assert same.score(moved, names[order]) == same.score(named, names)
        with pytest.raises(AsgatError, match=r"160 ids are missing \('node 0', .*160 ids are new \('0', '1', '2' and"):
            same.predict(user_graph)


def test_rows_without_ids_are_numbered(linkx, user_graph, blocks):
    np.testing.assert_array_equal(linkx.predict_proba(blocks.graph, blocks.x), linkx.predict_proba())
    order = np.random.default_rng(0).permutation(160)
    moved = in_order(order, user_graph.ids, blocks)  # their numbers as ids
    np.testing.assert_array_equal(linkx.predict_proba(moved), linkx.predict_proba()[order])
    with pytest.raises(
        AsgatError, match=r"linkx belong to the nodes of the .* 157 ids are missing \('3', '4', '5' and"
    ):
        linkx.predict(Graph.from_edges([[0], [1]], 3), blocks.x[:3])
    twice = replace(user_graph, ids=["0", *user_graph.ids[:-1]])
    with pytest.raises(AsgatError, match=r"1 id is missing \('159'\), 1 id is given more than once \('0'\)"):
        linkx.predict(twice)


def test_other_edges_between_the_same_nodes_are_warned_of(linkx, fitted, user_graph, blocks):
    fewer = as_user_graph(Graph.from_edges(user_graph.edges[:, 20:], 160), blocks.x)
    with pytest.warns(UserWarning, match="The edges differ from those of the fitted graph"):
        assert (linkx.predict_proba(fewer) != linkx.predict_proba()).any()
    assert fitted.predict_with_notes(fewer)[1] == []


def test_refusals(fitted, user_graph, blocks, tmp_path):
    with pytest.raises(AsgatError, match="lack 'x7'"):
        fitted.predict(as_user_graph(blocks.graph, blocks.x[:, :7]))
    with pytest.raises(AsgatError, match="No labelled node was left to test: fit with mask="):
        ASGATClassifier(**{**QUICK, "epochs": 1}).fit(user_graph, blocks.y).score()
    with pytest.raises(AsgatError, match="no labelled node to score"):
        fitted.score(user_graph, np.full(160, -1))
    with pytest.raises(AsgatError, match="Unknown model"):
        ASGATClassifier("nonsense").fit(user_graph, blocks.y)
    with pytest.raises(AsgatError, match="not a run directory"):
        ASGATClassifier.from_pretrained(tmp_path)


def test_a_run_on_a_data_set_is_not_a_fitted_graph(tmp_path):
    from asgat.nn.registry import make_config
    from asgat.training.runner import run

    run(load_dataset("karate"), "mlp", make_config("mlp", epochs=1), runs=[0], out=tmp_path)
    with pytest.raises(AsgatError, match="is a run on karate"):
        ASGATClassifier.from_pretrained(tmp_path)


def test_the_run_directory_is_that_of_every_run(fitted, tmp_path):
    fitted.save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    plain = {".lock", "config.toml", "metrics.jsonl", "result.json", "model.safetensors"}
    assert names == plain | {"graph.npz", "encoder.json", "health.json"}
    result = RunDirectory(tmp_path).read_result()
    assert result["micro_f1"]["mean"] == pytest.approx(fitted.score())
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == result["epochs"]


def test_the_same_graph(blocks):
    assert same_graph(blocks, blocks)
    assert not same_graph(blocks, contextual_sbm(num_nodes=160, num_features=8))


def test_directed_is_a_parameter():
    assert clone(ASGATClassifier(directed=True)).directed is True
    assert ASGATClassifier().get_params()["directed"] is False
    one = load_dataset("karate")
    other = replace(one, graph=Graph(one.graph.adjacency, directed=True))
    assert not same_graph(one, other)


def test_directions_are_used_whatever_library_the_graph_is_of(tmp_path):
    """The classes differ only in which of them is linked to."""
    networkx, pandas = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    from torch_geometric.data import Data

    rng = np.random.default_rng(0)
    ends = np.unique(2 * rng.integers(0, 40, (2, 300)) + [[0], [1]], axis=1)
    y, x = np.arange(80) % 2, np.ones((80, 2)) * [1.0, 2.0] + 0.1 * rng.standard_normal((80, 2))
    network = networkx.DiGraph()
    network.add_nodes_from((i, {"x0": x[i, 0], "x1": x[i, 1]}) for i in range(80))
    network.add_edges_from(ends.T.tolist())
    nodes = pandas.DataFrame({"id": range(80), "x0": x[:, 0], "x1": x[:, 1]})
    given = [
        (Graph.from_edges(ends, 80, directed=True), x),
        (network, None),
        (Data(edge_index=torch.tensor(ends), x=torch.tensor(x), num_nodes=80), None),
        ((pandas.DataFrame({"source": ends[0], "target": ends[1]}), nodes), None),
    ]
    fitted = [ASGATClassifier(**QUICK, directed=True).fit(graph, y, np.arange(50), x=own) for graph, own in given]
    expected = fitted[0].predict_proba()
    for model in fitted[1:]:
        np.testing.assert_array_equal(model.predict_proba(), expected)
    fitted[0].save_pretrained(tmp_path)
    again = ASGATClassifier.from_pretrained(tmp_path)
    assert again.directed
    np.testing.assert_array_equal(again.predict_proba(), expected)
    np.testing.assert_array_equal(again.predict_proba(*given[1]), expected)
    turned = Graph.from_edges(ends[::-1], 80, directed=True)
    assert np.abs(again.predict_proba(turned, x) - expected).max() > 1e-3


# -- presets ----------------------------------------------------------------------------------------


@pytest.fixture
def board(user_graph, names, monkeypatch):
    make_small_field(monkeypatch)
    return ASGATClassifier(preset="quick", directed=False).fit(user_graph, names, mask=np.arange(100))


def test_a_preset_tries_many_models_and_keeps_the_best(board, user_graph, names, tmp_path):
    found = board.leaderboard_
    assert found.chosen.model == board.model_
    assert board.model == "asgat-plus", "what was asked for does not change"
    assert board.config_.members == 3, "a network of every fold"
    assert found.members == 3 * (1 + len(board.partners_))
    assert board.score() == pytest.approx(found.chosen.test["micro_f1"]) == board.result_["test"]["scores"]["micro_f1"]
    assert board.score() > 0.7
    assert str(found).startswith("model")
    np.testing.assert_array_equal(board.predict_proba(user_graph), board.predict_proba())
    board.save_pretrained(tmp_path / "run")
    again = ASGATClassifier.from_pretrained(tmp_path / "run")
    assert again.leaderboard_ == found
    np.testing.assert_array_equal(again.predict_proba(), board.predict_proba())
    again.save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / "leaderboard.json").read_bytes() == (tmp_path / "run" / "leaderboard.json").read_bytes()
    assert clone(board).get_params()["preset"] == "quick"
    alone = board.set_params(preset=None, model="gcn").fit(user_graph, names, mask=np.arange(100))
    assert not hasattr(alone, "leaderboard_")
    assert alone.model_ == "gcn"


@pytest.fixture
def mixed(user_graph, names, monkeypatch):
    """The average of every model of the small field that reaches the last round."""
    make_small_field(monkeypatch)
    monkeypatch.setattr("asgat.leaderboard.contest.choose", lambda ranked, *_: ranked)
    return ASGATClassifier(preset="quick").fit(user_graph, names, mask=np.arange(100))


def test_several_models_are_averaged_saved_and_read(mixed, user_graph, tmp_path):
    assert len(mixed.partners_) == 1
    assert mixed.result_["partners"] == [name for name, _, _ in mixed.partners_]
    with torch.no_grad():
        each = [
            module.eval()(*make_inputs(mixed.dataset_, name, config, torch.device("cpu"))).double().softmax(-1).numpy()
            for name, config, module in [(mixed.model_, mixed.config_, mixed.module_), *mixed.partners_]
        ]
    np.testing.assert_allclose(mixed.predict_proba(), np.mean(each, axis=0), atol=1e-12)
    assert np.abs(each[0] - each[1]).max() > 1e-3, "one of them alone would be seen"
    mixed.save_pretrained(tmp_path / "run")
    again = ASGATClassifier.from_pretrained(tmp_path / "run")
    np.testing.assert_array_equal(again.predict_proba(), mixed.predict_proba())
    np.testing.assert_array_equal(again.predict_proba(user_graph), mixed.predict_proba())
    again.save_pretrained(tmp_path / "copy")
    for file in ("model.safetensors", "result.json"):
        assert (tmp_path / "copy" / file).read_bytes() == (tmp_path / "run" / file).read_bytes()
    probability = load_run(tmp_path / "run").logits().double().softmax(-1).numpy()
    np.testing.assert_allclose(probability, mixed.predict_proba(), atol=1e-6)


def test_another_graph_is_predicted_by_the_models_that_can(mixed, blocks):
    part = np.arange(80)
    other = as_user_graph(Graph.from_scipy(blocks.graph.adjacency[part][:, part]), blocks.x[part])
    linkx = make_config("linkx", hidden=4)
    bound = linkx, model_spec("linkx").make(linkx, mixed.dataset_.num_features, 2, mixed.dataset_.num_nodes)
    mixed.model_, mixed.config_, mixed.module_ = mixed.partners_[0] if mixed.model_ == "linkx" else mixed._models[0]
    mixed.partners_ = []
    mixed.__dict__.pop("_inputs", None)
    alone, notes = mixed.predict_with_notes(other)
    assert not notes
    mixed.partners_ = [("linkx", *bound)]
    found, notes = mixed.predict_with_notes(other)
    np.testing.assert_array_equal(found, alone)
    why = "80 ids are missing ('80', '81', '82' and 77 more)"
    assert notes == [f"Predicted without linkx, whose weights belong to the nodes of the fitted graph: {why}."]
    with pytest.warns(UserWarning, match="Predicted without linkx"):
        mixed.predict(other)
    mixed.model_, mixed.config_, mixed.module_ = ("linkx", *bound)
    with pytest.raises(AsgatError, match="belong to the nodes of the fitted graph"):
        mixed.predict(other)


def test_without_test_nodes_a_leaderboard_says_so(user_graph, names, monkeypatch):
    make_small_field(monkeypatch)
    found = ASGATClassifier(preset="quick").fit(user_graph, names).leaderboard_
    assert found.chosen.test is None
    assert "no test nodes" in found.sentences[0]


def test_a_metric_decides_early_stopping(user_graph, names):
    model = ASGATClassifier(**QUICK, metric="log_loss").fit(user_graph, names)
    assert model.result_["val_log_loss"] == model.result_["rows"][0]["val_score"] < 0
    with pytest.raises(AsgatError, match="metric must be one of"):
        ASGATClassifier(metric="accuracy").fit(user_graph, names)


def of_pandas(blocks, x, words):
    pandas = pytest.importorskip("pandas")
    row, col = blocks.graph.edge_index()
    nodes = pandas.DataFrame({"id": range(len(x)), **{f"x{i}": x[:, i] for i in range(x.shape[1])}, **words})
    return pandas.DataFrame({"source": row, "target": col}), nodes


def of_networkx(blocks, x, words):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    for i, row in enumerate(x.tolist()):
        own = {name: values[i] for name, values in words.items()}
        graph.add_node(i, **{f"x{j}": value for j, value in enumerate(row)}, **own)
    graph.add_edges_from(blocks.graph.edge_index().T.tolist())
    return graph


def of_pyg(blocks, x, _):
    data = blocks.to_pyg()
    data.x = torch.tensor(x)
    del data.train_mask, data.val_mask, data.test_mask
    return data


@pytest.mark.parametrize("make", [of_pandas, of_networkx, of_pyg])
def test_a_copy_of_the_label_among_the_features_is_left_out(make, blocks):
    leaking = np.concatenate([blocks.x, blocks.y[:, None]], axis=1).astype(np.float32)
    graph = make(blocks, leaking, {})
    with pytest.warns(UserWarning, match="'x8' tells the class of training and validation nodes, as a copy"):
        model = ASGATClassifier(**ONE_EPOCH).fit(graph, blocks.y)
    assert model.dataset_.num_features == 8
    assert any("'x8' tells" in change for change in model.health_.changes)
    expected = model.predict_proba()
    np.testing.assert_array_equal(model.predict_proba(graph), expected)
    new = make(blocks, blocks.x.astype(np.float32), {})
    np.testing.assert_allclose(model.predict_proba(new), expected, err_msg="it need not be known", atol=1e-6)
    clean = ASGATClassifier(**ONE_EPOCH).fit(new, blocks.y)
    np.testing.assert_allclose(clean.predict_proba(), expected, atol=1e-6)


@pytest.mark.parametrize("make", [of_pandas, of_networkx])
def test_the_label_itself_handed_over_as_a_feature_is_refused(make, blocks, names):
    graph = make(blocks, blocks.x, {"kind": names.tolist()})
    with pytest.raises(AsgatError, match=r"y is also among the features, as 'kind'.* fit\(graph, y='kind'\)"):
        ASGATClassifier(**ONE_EPOCH).fit(graph, names)
    nodes = as_user_graph(graph)
    with pytest.raises(AsgatError, match="y is also among the features"):
        ASGATClassifier(**ONE_EPOCH).fit(nodes[np.arange(100)], names[:100])
    codes = make(blocks, blocks.x, {"kind": names.tolist(), "code": (names == "low").astype(int).tolist()})
    with pytest.warns(UserWarning, match="'code' tells the class"):
        model = ASGATClassifier(**ONE_EPOCH).fit(codes, y="kind")
    assert model.dataset_.num_features == 8


def test_labels_of_pyg_that_are_its_features_are_refused(blocks):
    data = of_pyg(blocks, blocks.x, {})
    data.x = data.y.view(-1, 1)
    with pytest.raises(AsgatError, match="The features x are the labels 'y' themselves"):
        ASGATClassifier(**ONE_EPOCH).fit(data)
    with pytest.raises(AsgatError, match="y is also among the features, as 'x0'"):
        ASGATClassifier(**ONE_EPOCH).fit(blocks.graph, blocks.y, x=blocks.y[:, None])


def test_a_one_hot_label_as_features_of_pyg(blocks):
    data = of_pyg(blocks, np.eye(2, dtype=np.float32)[blocks.y], {})
    with pytest.warns(UserWarning, match="'x0', 'x1' tell the class"):
        model = ASGATClassifier(**ONE_EPOCH).fit(data)
    assert model.encoding_.encoder.degree


@pytest.mark.parametrize("make", [of_pandas, of_networkx])
def test_labels_named_by_their_column(make, blocks, names):
    graph = make(blocks, blocks.x, {"kind": names.tolist()})
    model = ASGATClassifier(**ONE_EPOCH).fit(graph, y="kind")
    assert model.classes_.tolist() == ["high", "low"]
    assert model.dataset_.num_features == 8
    accuracy = pytest.approx(np.mean(model.predict(graph) == names))
    assert model.score(graph) == model.score(graph, "kind") == accuracy
    unlabelled = make(blocks, blocks.x, {})
    np.testing.assert_array_equal(model.predict(unlabelled), model.predict())
    with pytest.raises(AsgatError, match=r"no column 'kin' of labels\. Did you mean 'kind'"):
        ASGATClassifier(**ONE_EPOCH).fit(graph, y="kin")


def test_labels_of_pyg_named_by_their_tensor(blocks):
    data = of_pyg(blocks, blocks.x, {})
    data.target, data.y = data.y, None
    model = ASGATClassifier(**ONE_EPOCH).fit(data, y="target")
    assert model.score(data) == pytest.approx(np.mean(model.predict() == blocks.y))
    with pytest.raises(AsgatError, match="There are no labels"):
        ASGATClassifier(**ONE_EPOCH).fit(data)
    data.y = torch.eye(blocks.num_classes)[torch.from_numpy(blocks.y)]
    with pytest.raises(AsgatError, match=r"of one-hot rows give y\.argmax\(1\)"):
        ASGATClassifier(**ONE_EPOCH).fit(data)


def test_an_empty_graph_has_no_column_of_labels():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(AsgatError, match=r"no column 'kind' of labels\. They have no columns at all"):
        ASGATClassifier(**ONE_EPOCH).fit(networkx.Graph(), y="kind")


@pytest.mark.parametrize("make", [of_pandas, of_networkx])
def test_a_column_of_train_val_and_test_is_the_split(make, blocks):
    parts = (["train"] * 3 + ["val", "test"]) * 32
    graph = make(blocks, blocks.x, {"part": parts})
    with pytest.warns(UserWarning, match="'part' says which part a node is in: used as the split"):
        model = ASGATClassifier(**ONE_EPOCH).fit(graph, blocks.y)
    assert model.dataset_.splits[0].test.tolist() == list(range(4, 160, 5))
    assert model.dataset_.num_features == 8
    with pytest.warns(UserWarning, match="'part' says which part a node is in, and another split is used: left out"):
        masked = ASGATClassifier(**ONE_EPOCH).fit(graph, blocks.y, mask=np.arange(100))
    assert masked.dataset_.num_features == 8
    assert masked.predict(graph).shape == (160,)


def test_edge_attributes_are_warned_of(blocks):
    data = blocks.to_pyg()
    data.edge_attr = torch.ones(data.edge_index.shape[1], 2)
    with pytest.warns(UserWarning, match="edge_attr is not used"):
        ASGATClassifier(**ONE_EPOCH).fit(data)
