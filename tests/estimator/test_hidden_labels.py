"""Labels of test nodes are for scores alone: other ones change no column, no setting, no weight and no probability."""

import csv
import hashlib
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from asgat.data import contextual_sbm
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.health import examine
from asgat.tabular.column import Column
from asgat.tabular.conversions import as_user_graph

N, CLASSES = 120, 3
DATA = contextual_sbm(N, CLASSES, mean_degree=4.0, homophily=0.75, num_features=4, signal=0.6, seed=2)
PART = np.random.default_rng(0).choice(["train", "val", "test", ""], N, p=[0.4, 0.2, 0.35, 0.05])
HIDDEN = np.flatnonzero((PART == "test") | (PART == ""))
NAMES = np.array(["a", "b", "c", ""])  # the last is that of -1
QUICK = {"epochs": 4, "hidden": 8}
pytestmark = pytest.mark.filterwarnings("ignore:.*tells? the class of")


def permuted(seed):
    """The labels, in another order at the nodes that are neither trained nor validated on."""
    y = DATA.y.copy()
    y[HIDDEN] = np.random.default_rng(seed).permutation(y[HIDDEN])
    return y


def replaced(seed):
    """The labels, all others at these nodes."""
    y = DATA.y.copy()
    y[HIDDEN] = (y[HIDDEN] + np.random.default_rng(seed).integers(1, CLASSES, len(HIDDEN))) % CLASSES
    return y


def removed(_=0):
    """The labels, none at these nodes."""
    return np.where(np.isin(np.arange(N), HIDDEN), -1, DATA.y)


OTHERS = pytest.mark.parametrize("y", [permuted(0), replaced(0), removed()], ids=["permuted", "replaced", "removed"])


def columns(copies):
    """Features that measure and, with copies, one that has the label at all nodes and one at all but three of them."""
    found = [Column.of_array(f"f{i}", column) for i, column in enumerate(DATA.x.T)]
    if copies:
        wrong = DATA.y.copy()
        wrong[HIDDEN[:3]] = (wrong[HIDDEN[:3]] + 1) % CLASSES
        words = np.array(["red", "green", "blue"])
        found += [Column.of_texts("copy", words[DATA.y].tolist()), Column.of_texts("near", words[wrong].tolist())]
    return found


def user_graph(y, copies=False):
    whole = as_user_graph(DATA.graph)
    parts = Column.of_texts("part", PART.tolist())
    label = Column.of_texts("kind", NAMES[y].tolist())
    return replace(whole, features=columns(copies), label=label, columns={"label": "kind"}, splits=[parts])


def decided(y, copies):
    """The columns, and the settings, that a graph leads to."""
    graph = user_graph(y, copies)
    encoded = encode_user_graph(graph)
    health = examine(graph, encoded.dataset, encoded.encoding.class_names, encoded.notes)
    config = ASGATClassifier().make_config(health)
    return encoded.encoding.encoder.names, digest(encoded.dataset.x.tobytes()), health.advice, config


@pytest.mark.parametrize("copies", [False, True])
@given(seed=st.integers(0, 2**31), other=st.sampled_from([permuted, replaced, removed]))
@settings(max_examples=20)
def test_they_decide_neither_columns_nor_settings(copies, seed, other):
    found = decided(DATA.y, copies)
    assert found == decided(other(seed), copies)
    assert found[0] == [f"f{i}" for i in range(4)], "copies at training and validation nodes are left out"
    assert found[3].k == 12, "of their labels β is high"


def test_of_several_splits_the_first_decides_for_all():
    """Every node is a test node of one of these splits, so that no label is hidden from all of them."""
    turns = [np.where(np.arange(N) % 3 == i, "test", np.where(np.arange(N) % 5, "train", "val")) for i in range(3)]
    splits = [Column.of_texts(f"turn{i}", turn.tolist()) for i, turn in enumerate(turns)]
    near = np.where(np.arange(N) == 6, (DATA.y + 1) % CLASSES, DATA.y)
    graph = replace(user_graph(DATA.y), features=[*columns(False), Column.of_texts("near", NAMES[near].tolist())])
    for repeats in (1, 2, 3):
        encoded = encode_user_graph(graph.with_splits(splits), repeats=repeats)
        assert "near" not in " ".join(encoded.encoding.encoder.names), "6 is a test node of the first split"
        encoded = encode_user_graph(graph.with_splits(splits[::-1]), repeats=repeats)
        assert "near=a" in encoded.encoding.encoder.names, "and a training node of the last"


def fit(y, masks, copies, **options):
    graph = user_graph(y, copies)
    model = ASGATClassifier(**{**QUICK, **options})
    if masks:
        graph = replace(graph, splits=(), label=None, columns={})
        return model.fit(graph, NAMES[y], mask=PART == "train", val_mask=PART == "val")
    return model.fit(graph)


def digest(content):
    return hashlib.sha256(content).hexdigest()


def content(state):
    return {name: digest(value.numpy().tobytes()) for name, value in state.items()}


def trained(model):
    """Every number of a fitted model that is not a score of test nodes."""
    models = [(model.model_, model.config_, model.module_), *model.partners_]
    weights = [(name, config, content(module.state_dict())) for name, config, module in models]
    keys = ("val_score", "val_loss", "epochs", "best_epoch", "restarts")
    rows = [{key: row[key] for key in keys} for row in model.result_["rows"]]
    return weights, digest(model.predict_proba().tobytes()), rows, model.history_


@pytest.mark.parametrize("masks", [False, True], ids=["split", "masks"])
@pytest.mark.parametrize("model", ["asgat-plus", "linkx"])
@OTHERS
def test_they_change_no_weight_and_no_probability(model, masks, y):
    for copies in (False, True):
        assert trained(fit(DATA.y, masks, copies, model=model)) == trained(fit(y, masks, copies, model=model))


def test_they_change_nothing_on_a_leaderboard():
    """That of a whole preset, with more time than it takes."""
    boards = [fit(labels, False, True, preset="quick", time_limit=60.0) for labels in (DATA.y, replaced(0))]
    assert not any(board.leaderboard_.cut for board in boards)
    assert trained(boards[0]) == trained(boards[1])
    table = [[(row.name, row.val, row.settings) for row in board.leaderboard_.rows] for board in boards]
    assert table[0] == table[1]


def test_they_change_nothing_of_what_a_command_trains(asgat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row, col = DATA.graph.edge_index()
    write("edges.csv", ["source", "target"], zip(row.tolist(), col.tolist(), strict=True))
    found = []
    for name, y in (("given", DATA.y), ("other", replaced(5))):
        features = columns(copies=True)
        texts = [column.texts() for column in features]
        heading = ["id", "kind", "part", *(column.name for column in features)]
        write(f"{name}.csv", heading, zip(range(N), NAMES[y], PART, *texts, strict=True))
        options = ["--label", "kind", "--split", "part", "--model", "asgat-plus", "--set", "epochs=4", "--out", name]
        code, _, errors = asgat("fit", "--edges", "edges.csv", "--nodes", f"{name}.csv", *options)
        assert code == 0, errors
        code, _, errors = asgat("predict", name, "-o", f"{name}-predicted.csv")
        assert code == 0, errors
        weights = content(load_file(Path(name) / "model.safetensors"))
        with open(f"{name}-predicted.csv", encoding="utf-8", newline="") as file:
            probability = [[row["id"], row["p(a)"], row["p(b)"], row["p(c)"]] for row in csv.DictReader(file)]
        config = tomllib.loads((Path(name) / "config.toml").read_text())["config"]
        found.append((weights, probability, (Path(name) / "encoder.json").read_bytes(), config))
    assert found[0] == found[1]


def write(path, heading, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([heading, *rows])
