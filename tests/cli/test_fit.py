"""fit and predict as a user types them, with good files and bad."""

import csv
import gzip
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from asgat.data import contextual_sbm

QUICK = ["--set", "epochs=8", "--set", "hidden=4", "--set", "heads=2", "--set", "max_restarts=0"]


def write(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if path.endswith(".tsv") else ",").writerows(rows)


def write_graph(nodes=60, seed=0, prefix="n", hidden=0.3):
    """Two classes, features of every kind, some labels and values missing, one repeated edge and a self-loop."""
    data = contextual_sbm(num_nodes=nodes, signal=1.0, num_features=3, seed=seed)
    rng = np.random.default_rng(seed)
    heading = ["id", "kind", "size", "town", "member", "weight_kg", "same"]
    rows = [heading]
    for i in range(nodes):
        kind = "" if rng.random() < hidden else ["buyer", "seller"][data.y[i]]
        town = "" if i % 7 == 0 else ["Ulm", "Köln"][int(data.x[i, 1] > 0)]
        rows.append(
            [f"{prefix}{i}", kind, data.x[i, 0], town, ["yes", "no"][i % 2], "" if i == 3 else data.x[i, 2], "7"]
        )
    write("nodes.csv", rows)
    row, col = data.graph.edge_index()
    edges = [(f"{prefix}{a}", f"{prefix}{b}") for a, b in zip(row, col, strict=True) if a < b]
    write("edges.csv", [("source", "target"), *edges, edges[0], (f"{prefix}0", f"{prefix}0")])


def lines(path):
    return list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines()))


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


GIVEN = ["fit", "--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "kind"]
FIT = [*GIVEN, "--out", "run", "--model", "asgat-plus"]


def test_from_files_to_predictions(asgat):
    write_graph()
    code, output, errors = asgat(*FIT, *QUICK, "--json", "result.json")
    assert code == 0, errors
    for words in (
        f"Health of {Path().absolute().name}",
        "60",
        "β",
        "self-loop",
        "repeat",
        "town (9), weight_kg (1)",
        "Column same: left out",
        "k = 9",
        "form =",
    ):
        assert words in output
    result = json.loads(Path("result.json").read_bytes())
    assert result["health"]["nodes"] == 60
    assert result["micro_f1"]["per_run"][0] <= 1
    code, output, errors = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")
    assert code == 0, errors
    rows, given = read("p.csv"), read("nodes.csv")
    assert [row["id"] for row in rows] == [row["id"] for row in given]
    assert [row["label"] for row in rows] == [row["kind"] for row in given]
    assert [row["labelled"] == "true" for row in rows] == [row["kind"] != "" for row in given]
    for row in rows:
        chances = {name: float(row[f"p({name})"]) for name in ("buyer", "seller")}
        assert sum(chances.values()) == pytest.approx(1.0)
        assert row["prediction"] == max(chances, key=lambda name: chances[name])
    asgat("predict", "run", "-o", "q.csv")
    assert read("q.csv") == rows, "the graph that was fitted is the same graph"


def test_an_unseen_graph_of_another_size(asgat):
    write_graph(hidden=0.0)
    assert asgat(*FIT, *QUICK[2:], "--set", "epochs=60")[0] == 0
    write_graph(90, seed=0, prefix="other", hidden=0.0)
    code, _, errors = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.tsv")
    assert code == 0, errors
    write("unlabelled.csv", [[cell for j, cell in enumerate(row) if j != 1] for row in lines("nodes.csv")])
    code, _, errors = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "unlabelled.csv", "-o", "p.csv")
    assert code == 0, errors
    rows = read("p.csv")
    assert len(rows) == 90
    assert {row["labelled"] for row in rows} == {"false"}
    with open("p.tsv", encoding="utf-8") as file:
        assert [line.split("\t")[1] for line in file][1:] == [row["prediction"] for row in rows]


def test_a_model_of_this_graph_alone_says_so_when_it_is_fitted(asgat):
    write_graph()
    code, output, errors = asgat(*GIVEN, "--out", "run", "--model", "linkx", "--set", "epochs=2")
    assert code == 0, errors
    assert "so it predicts no other nodes; a model that does is --model asgat-plus." in flat(output)
    assert asgat("predict", "run", "-o", "p.csv")[0] == 0
    write_graph(90, prefix="other")
    code, _, errors = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")
    assert code == 2
    assert "or fit a model that predicts any nodes, such as asgat-plus" in errors
    code, output, errors = asgat(*FIT, *QUICK, "--fresh")
    assert code == 0, errors
    assert "predicts no other nodes" not in flat(output)


def shuffle(file, seed=1):
    heading, *rows = lines(file)
    order = np.random.default_rng(seed).permutation(len(rows)).tolist()
    write(file, [heading, *(rows[i] for i in order)])


def predicted(file):
    """The class and the probability of every id."""
    return {row["id"]: (row["prediction"], pytest.approx(float(row["p(buyer)"]), abs=1e-6)) for row in read(file)}


PREDICT = ["predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv"]


@pytest.mark.parametrize("model", [["linkx"], ["asgat-plus", "--set", "adjacency=true"], ["gcn"], ["asgat-plus"]])
def test_rows_in_another_order_are_the_same_nodes(asgat, model):
    write_graph()
    code, _, errors = asgat(*GIVEN, "--out", "run", "--model", *model, "--set", "epochs=30")
    assert code == 0, errors
    assert asgat("predict", "run", "-o", "q.csv")[0] == 0
    for file in ("nodes.csv", "edges.csv"):
        shuffle(file)
    code, output, errors = asgat(*PREDICT)
    assert code == 0, errors
    assert "differ" not in output
    assert [row["id"] for row in read("p.csv")] == [row[0] for row in lines("nodes.csv")[1:]]
    assert predicted("p.csv") == predicted("q.csv")


def test_a_model_of_these_nodes_predicts_them_with_other_edges_and_says_so(asgat):
    write_graph()
    assert asgat(*GIVEN, "--out", "run", "--model", "linkx", "--set", "epochs=30")[0] == 0
    assert asgat("predict", "run", "-o", "q.csv")[0] == 0
    write("edges.csv", lines("edges.csv")[:-40])
    code, output, errors = asgat(*PREDICT)
    assert code == 0, errors
    assert "The edges differ from those of the fitted graph; the nodes are the same." in flat(output)
    in_order = predicted("p.csv")
    assert in_order != predicted("q.csv")
    shuffle("nodes.csv")
    assert asgat(*PREDICT)[0] == 0
    assert predicted("p.csv") == in_order


def test_nodes_that_a_model_has_no_weights_for_are_refused(asgat, place):
    write_graph()
    assert asgat(*GIVEN, "--out", "run", "--model", "linkx", "--set", "epochs=1")[0] == 0
    heading, *rows = lines("nodes.csv")
    new = [[f"new{i}", *rows[i][1:]] for i in range(5)]
    ends = lines("edges.csv")
    write("edges.csv", [pair for pair in ends if not set(pair) & {row[0] for row in rows[:5]}])
    kept = ["('n0', 'n1', 'n2' and 2 more)", "('new0', 'new1', 'new2' and 2 more)"]
    for nodes, words in (
        (rows[5:], f"differ: 5 ids are missing {kept[0]}. Give the same ids"),
        (rows + new[:1], "differ: 1 id is new ('new0'). Give the same ids"),
        (new + rows[5:], f"differ: 5 ids are missing {kept[0]}, 5 ids are new {kept[1]}. Give the same ids"),
        (rows + rows[:4], "nodes.csv has 4 ids more than once: 'n0', 'n1', 'n2' and 1 more (column 'id')"),
    ):
        write("nodes.csv", [heading, *nodes])
        code, _, errors = asgat(*PREDICT)
        assert code == 2
        assert words in errors
        assert errors.count("\n") == 1
        assert not (place / "p.csv").exists()


def test_other_nodes_are_predicted_by_the_models_of_an_average_that_can(asgat):
    from asgat import ASGATClassifier

    write_graph()
    for name in ("gcn", "linkx"):
        assert asgat(*GIVEN, "--out", name, "--model", name, "--set", "epochs=5")[0] == 0
    both, linkx = (ASGATClassifier.from_pretrained(name) for name in ("gcn", "linkx"))
    both.partners_ = [(linkx.model_, linkx.config_, linkx.module_)]
    both.save_pretrained("run")
    shuffle("nodes.csv")
    code, output, errors = asgat(*PREDICT)
    assert code == 0, errors
    assert "Predicted without" not in flat(output)
    assert asgat("predict", "run", "-o", "q.csv")[0] == 0
    assert predicted("p.csv") == predicted("q.csv")
    text = {name: Path(name).read_text(encoding="utf-8") for name in ("nodes.csv", "edges.csv")}
    for name, content in text.items():
        Path(name).write_text(content.replace("n3,", "m3,").replace(",n3\n", ",m3\n"), encoding="utf-8")
    code, output, errors = asgat(*PREDICT)
    assert code == 0, errors
    reason = "1 id is missing ('n3'), 1 id is new ('m3')"
    assert "Predicted without linkx, whose weights belong to the nodes of the fitted graph: " + reason in flat(output)
    assert asgat("predict", "gcn", *PREDICT[2:-1], "alone.csv")[0] == 0
    assert read("p.csv") == read("alone.csv")


def test_few_test_nodes_are_said(asgat):
    write_graph(30)
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert re.search(r"Only \d test nodes: each is \d\d\.\d points of a test score", flat(output))


def test_columns_that_differ_are_named(asgat):
    write_graph()
    asgat(*FIT, *QUICK)
    rows = read("nodes.csv")
    write("renamed.csv", [["id", "kind", "length"], *[[row["id"], row["kind"], row["size"]] for row in rows]])
    code, _, errors = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "renamed.csv", "-o", "p.csv")
    assert code == 2
    assert "lack 'size', 'town', 'member', 'weight_kg' and have 'length' as well" in errors


def test_a_run_with_other_settings_is_replaced_only_with_fresh(asgat):
    write_graph()
    assert asgat(*FIT, *QUICK)[0] == 0
    assert asgat(*FIT, *QUICK)[0] == 0
    code, _, errors = asgat(*FIT, *QUICK, "--set", "k=3")
    assert code == 2
    assert "other settings (k)" in errors
    assert asgat(*FIT, *QUICK, "--set", "k=3", "--fresh")[0] == 0


def test_repeats_are_other_splits_and_seeds(asgat):
    write_graph(120, hidden=0.0)
    code, output, errors = asgat(*FIT, *QUICK, "--repeats", "3", "--json", "r.json")
    assert code == 0, errors
    assert "Test scores, mean of 3 repeats" in output
    result = json.loads(Path("r.json").read_bytes())
    assert [row["seed"] for row in result["rows"]] == [0, 1, 2]
    scores = [row["micro_f1"] for row in result["rows"]]
    assert len(set(scores)) > 1
    assert result["test"]["scores"]["micro_f1"] == pytest.approx(np.mean(scores)) == result["micro_f1"]["mean"]
    assert result["test"]["interval"][0] < np.mean(scores) < result["test"]["interval"][1]
    assert set(result["test"]["scores"]) == {"micro_f1", "macro_f1", "roc_auc", "log_loss", "calibration_error"}
    alone = asgat(*GIVEN, "--model", "asgat-plus", *QUICK, "--out", "alone", "--json", "alone.json")
    assert alone[0] == 0
    assert json.loads(Path("alone.json").read_bytes())["rows"][0]["micro_f1"] == scores[0], (
        "the first is the run itself"
    )
    assert asgat("predict", "run", "-o", "p.csv")[0] == asgat("predict", "alone", "-o", "q.csv")[0] == 0
    assert read("p.csv") == read("q.csv")


@pytest.mark.parametrize("metric", ["macro-f1", "roc_auc", "log_loss"])
def test_a_metric_decides(asgat, metric):
    write_graph(hidden=0.0)
    code, output, _ = asgat(*FIT, *QUICK, "--metric", metric, "--json", "r.json")
    assert code == 0
    result, name = json.loads(Path("r.json").read_bytes()), metric.replace("-", "_")
    val = result["rows"][0]["val_score"]
    assert (f"{-val:.3f}" if metric == "log_loss" else f"{100 * val:.1f}") in output
    assert result["test"]["metric"] == name
    assert result[f"val_{name}"] == result["rows"][0]["val_score"]
    assert result["val_micro_f1"] is None
    assert asgat("report", "run")[0] == 0
    code, _, errors = asgat(*FIT, *QUICK, "--metric", "accuracy")
    assert code == 2
    assert "metric must be one of micro_f1, macro_f1, roc_auc, log_loss, not 'accuracy'" in errors


def test_a_score_no_better_than_guessing_is_said_with_what_to_try(asgat):
    rng = np.random.default_rng(0)
    write(
        "nodes.csv", [["id", "kind", "f"], *[[f"n{i}", "ab"[int(rng.random() < 0.5)], rng.random()] for i in range(60)]]
    )
    pairs = rng.integers(0, 60, (150, 2))
    write("edges.csv", [["source", "target"], *[[f"n{a}", f"n{b}"] for a, b in pairs]])
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert "→ Not significantly better than guessing: asgat-plus has a test micro-F1 of" in output
    assert "what to try: label more nodes" in output


def test_the_default_run_directory_is_named_after_the_folder_of_the_data(asgat, place):
    for name in ("market", "farm"):
        (place / name).mkdir()
        write_graph(seed=len(name))
        for file in ("nodes.csv", "edges.csv"):
            Path(file).rename(place / name / file)
        files = ["fit", "--edges", f"{name}/edges.csv", "--nodes", f"{name}/nodes.csv", "--label", "kind"]
        assert asgat(*files, "--model", "asgat-plus", *QUICK)[0] == 0
    assert sorted(path.name for path in (place / "runs").iterdir()) == [
        "farm-asgat-plus-seed0",
        "market-asgat-plus-seed0",
    ]
    (place / "farm" / "nodes.csv").write_bytes((place / "market" / "nodes.csv").read_bytes())
    (place / "farm" / "edges.csv").write_bytes((place / "market" / "edges.csv").read_bytes())
    code, _, errors = asgat(*files, "--model", "asgat-plus", *QUICK)
    assert code == 2
    assert "holds a run of other data" in errors
    assert "--fresh" in errors


def test_a_given_split_is_followed(asgat):
    write_graph(hidden=0.0)
    rows = lines("nodes.csv")
    parts = ["train", "val", "test"]
    write("nodes.csv", [[*rows[0], "part"], *[[*row, parts[i % 3]] for i, row in enumerate(rows[1:])]])
    assert asgat(*FIT, *QUICK, "--split", "part", "--json", "r.json")[0] == 0
    health = json.loads(Path("r.json").read_bytes())["health"]
    assert health["parts"] == {"train": 20, "val": 20, "test": 20}
    assert health["columns"] == 5, "the split is not a feature"


def test_repeats_take_several_splits(asgat):
    write_graph(hidden=0.0)
    for number in range(2):
        add_column(f"part{number}", lambda i, _, number=number: ["train", "val", "test"][(i + number) % 3])
    splits = "--split", "part0", "--split", "part1"
    code, output, errors = asgat(*FIT, *QUICK, *splits, "--json", "r.json")
    assert code == 0, errors
    assert "Test scores, mean of 2 repeats" in output
    assert json.loads(Path("r.json").read_bytes())["health"]["columns"] == 5
    code, output, _ = asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")
    assert (code, "part" in output) == (0, False), output
    compare = "compare", *FIT[1:5], "--label", "kind", *splits, "--models", "mlp", "--set", "epochs=2"
    assert asgat(*compare, "--json", "c.json")[0] == 0
    assert [row["run"] for row in json.loads(Path("c.json").read_bytes())["rows"][0]["rows"]] == [0, 1]
    code, _, errors = asgat(*compare, "--splits", "0-2")
    assert (code, "there is no split 2" in errors) == (2, True), errors


@pytest.mark.parametrize("ending", [".tsv", ".parquet", ".npz", ".graphml"])
def test_other_formats(asgat, ending):
    networkx = pytest.importorskip("networkx")
    data = contextual_sbm(num_nodes=40, signal=1.0, num_features=2, seed=0)
    row, col = data.graph.edge_index()
    edges, nodes = {"source": row, "target": col}, {"id": np.arange(40), "kind": data.y, "f": data.x[:, 0]}
    options = ["--nodes", f"nodes{ending}"]
    if ending == ".tsv":
        write("edges.tsv", [list(edges), *zip(*edges.values(), strict=True)])
        write("nodes.tsv", [list(nodes), *zip(*nodes.values(), strict=True)])
    elif ending == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(edges), "edges.parquet")
        parquet.write_table(pyarrow.table(nodes), "nodes.parquet")
    elif ending == ".npz":
        np.savez("edges.npz", edge_index=np.stack([row, col]), kind=data.y, f=data.x)
        options = []
    else:
        graph = networkx.Graph(list(zip(row.tolist(), col.tolist(), strict=True)))
        graph.add_nodes_from((i, {"kind": f"class {data.y[i]}", "f": float(data.x[i, 0])}) for i in range(40))
        networkx.write_graphml_xml(graph, "edges.graphml")
        options = []
    code, _, errors = asgat("fit", "--edges", f"edges{ending}", *options, *FIT[5:], *QUICK)
    assert code == 0, errors
    pytest.importorskip("pyarrow")
    code, output, errors = asgat("predict", "run", "--edges", f"edges{ending}", *options, "-o", "p.parquet")
    assert code == 0, errors
    assert "predictions: p.parquet" in output


# -- what is handled, and reported ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[3].__setitem__(1, "rare"), "Only one node is of class 'rare'"),
        (
            lambda rows: [row.append("1") for row in rows[1:]] and rows[0].append("one"),
            "columns (same, one): left out, as the value is the same",
        ),
        (lambda rows: rows.append(["alone", "", "1", "Ulm", "yes", "1", "7"]), "without an edge"),
        (lambda rows: [row.__setitem__(2, "") for row in rows[1:]], "Column size: left out, as there is no value"),
        (
            lambda rows: [row.__setitem__(3, f"t{i}") for i, row in enumerate(rows[1:])],
            "Column town: left out, as most texts occur once",
        ),
        (lambda rows: [row.__delitem__(slice(2, None)) for row in rows], "the degree of a node is its feature"),
        (lambda rows: rows[5].__setitem__(2, "inf"), "size (1), town (9)"),
        (lambda rows: rows[5].__setitem__(2, "1e300"), "run directory"),
    ],
)
def test_handled_and_reported(asgat, change, words):
    write_graph()
    rows = lines("nodes.csv")
    change(rows)
    write("nodes.csv", rows)
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert words in output


def test_control_characters_in_names_do_not_reach_the_terminal(asgat, place):
    """A class, a column, an id and a file with an escape sequence, through every command that prints them."""
    red = "\x1b[31m"
    write_graph(hidden=0.0)
    rows = lines("nodes.csv")
    rows[0][2], rows[1][0] = f"{red}size", f"{red}0"
    rows[0][3] = f"{red}town"
    for row in rows[1:]:
        row[1] += red
        row[2] = "" if row is rows[4] else row[2]
    write(f"{red}nodes.csv", rows)
    edges = [[cell if cell != "n0" else f"{red}0" for cell in row] for row in lines("edges.csv")]
    write("edges.csv", edges)
    given = ["--edges", "edges.csv", "--nodes", f"{red}nodes.csv"]
    commands = {
        "fit": ["fit", *given, *FIT[5:], *QUICK],
        "predict": ["predict", "run", *given, "-o", f"{red}p.csv"],
        "explain": ["explain", "run", "--node", f"{red}0"],
        "report": ["report", "run"],
    }
    for name, command in commands.items():
        code, output, errors = asgat(*command)
        assert code == 0, errors
        assert "\x1b" not in output + errors, name
        assert name == "report" or r"\x1b[31m" in output, name
    assert f"buyer{red}" in Path(f"{red}p.csv").read_text(encoding="utf-8"), "files keep the names"
    code, _, errors = asgat(*commands["fit"], "--ignore", f"{red}absent")
    assert code == 2
    assert "\x1b" not in errors
    assert r"\x1b[31mabsent" in errors


# -- what is refused --------------------------------------------------------------------------------------------------

EDGES = "source,target\na,b\nb,c\nc,d\n"
NODES = "id,kind,f\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"

BAD: dict[str, tuple[dict[str, str | bytes], list[str], str]] = {
    "label column missing": ({}, ["--label", "class"], "no column 'class'"),
    "id column missing": ({}, ["--id", "key"], "no column 'key'"),
    "source column missing": ({}, ["--source", "from", "--target", "to"], "no column 'from'"),
    "weight column missing": ({}, ["--weight", "w"], "no column 'w'"),
    "split column missing": ({}, ["--split", "part"], "no column 'part'"),
    "ids the nodes lack": ({"edges.csv": EDGES + "a,z\n"}, [], "names the node 'z'"),
    "one class": ({"nodes.csv": "id,kind\na,x\nb,x\nc,\nd,x\n"}, [], "of one class, 'x'"),
    "no label": ({"nodes.csv": "id,kind\na,\nb,\nc,\nd,\n"}, [], "No node has a label"),
    "weight no number": ({"edges.csv": "source,target,w\na,b,heavy\n"}, ["--weight", "w"], "'heavy'"),
    "weight negative": ({"edges.csv": "source,target,w\na,b,-2\n"}, ["--weight", "w"], "is -2"),
    "edges empty": ({"edges.csv": ""}, [], "edges.csv cannot be used: it is empty"),
    "nodes empty": ({"nodes.csv": ""}, [], "nodes.csv cannot be used: it is empty"),
    "heading only": ({"nodes.csv": "id,kind\n"}, [], "no row"),
    "latin1": ({"nodes.csv": "id,kind\nä,x\n".encode("latin1")}, [], "not UTF-8"),
    "utf-16": ({"nodes.csv": NODES.encode("utf-16")}, [], "UTF-16"),
    "duplicate ids": ({"nodes.csv": NODES + "a,x,5\n"}, [], "has 1 id more than once: 'a'"),
    "an id missing": ({"nodes.csv": NODES + ",x,5\n"}, [], "no id in row 5"),
    "a Parquet called CSV": ({"nodes.csv": b"PAR1xxxxPAR1"}, [], "is a Parquet file"),
    "a zip called CSV": ({"nodes.csv": b"PK\x03\x04xx"}, [], "zip archive"),
    "a binary called CSV": ({"nodes.csv": b"\0\1\2\3"}, [], "null bytes"),
    "a text called Parquet": ({"nodes.parquet": NODES}, ["--nodes", "nodes.parquet"], "is not such a file"),
    "a text called npz": ({"nodes.npz": NODES}, ["--nodes", "nodes.npz"], "is not such a file"),
    "a text called GraphML": ({"g.graphml": NODES}, ["--edges", "g.graphml"], "not valid XML"),
    "a document type": ({"g.graphml": "<!DOCTYPE a []><graphml/>"}, ["--edges", "g.graphml"], "document type"),
    "an unknown ending": ({"nodes.json": NODES}, ["--nodes", "nodes.json"], "files that can be read end in"),
    "a file that is not there": ({}, ["--nodes", "absent.csv"], "absent.csv cannot be read"),
    "a folder": ({}, ["--nodes", "."], "is a folder|ends in"),
    "ragged lines": ({"nodes.csv": NODES + "e,x\n"}, [], "line 6 has 2 fields"),
    "two columns of one name": ({"nodes.csv": "id,kind,kind\na,x,y\n"}, [], "two columns are called 'kind'"),
    "no heading": ({"edges.csv": "a,b\nb,c\n"}, [], "seems to have no heading"),
    "unclear ends": ({"edges.csv": "p,q,r\na,b,c\n"}, [], "--source and --target"),
    "an end missing": ({"edges.csv": "source,target\na,\n"}, [], "names no node in row 1"),
    "an unknown part": ({"nodes.csv": "id,kind,s\na,x,trian\nb,y,val\nc,x,\nd,y,\n"}, ["--split", "s"], "'trian'"),
    "nothing to train on": ({"nodes.csv": "id,kind,s\na,x,val\nb,y,val\nc,,\nd,,\n"}, ["--split", "s"], "into train"),
    "too few labels": ({"nodes.csv": "id,kind\na,x\nb,y\nc,\nd,\n"}, [], "label more nodes"),
    "every label another": (
        {"nodes.csv": "id,kind\n" + "".join(f"{i},{i}.5\n" for i in "abcd" + "efghijklmnopqrstuvwxyz")},
        [],
        "different values",
    ),
    "an unclosed quote": ({"nodes.csv": NODES + 'e,"x,1\n'}, [], "not a valid line"),
    "an unknown setting": ({}, ["--set", "kk=3"], "Unknown setting 'kk'"),
    "an unknown model": ({}, ["--model", "gnc"], "Unknown model 'gnc'"),
    "an unwritable place": ({"file": "x"}, ["--out", "file/run"], "cannot be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_code_two(asgat, place, case):
    files, options, words = BAD[case]
    contents: dict[str, str | bytes] = {"edges.csv": EDGES, "nodes.csv": NODES, **files}
    for name, content in contents.items():
        (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    given = dict(zip(FIT[1::2], FIT[2::2], strict=True))
    more = [pair for pair in zip(options[::2], options[1::2], strict=True) if pair[0] in given]
    given.update(dict(more))
    rest = [word for pair in zip(options[::2], options[1::2], strict=True) if pair not in more for word in pair]
    if case in ("a text called GraphML", "a document type"):
        del given["--nodes"]
    code, output, errors = asgat("fit", *[word for pair in given.items() for word in pair], *rest)
    assert code == 2, (output, errors)
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1, errors
    assert any(word in errors for word in words.split("|")), errors
    assert not (place / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "absent"], "not a run directory"),
        (["predict", "run", "-o", "p.xlsx"], "must end in .csv"),
        (["predict", "run", "--nodes", "nodes.csv"], "need their edges"),
        (["predict", "run", "--edges", "edges.csv"], "holds edges only"),
    ],
)
def test_predictions_that_cannot_be_made(asgat, arguments, words):
    write_graph()
    if arguments[1] == "run" and "p.xlsx" not in arguments:
        assert asgat(*FIT, *QUICK)[0] == 0
    code, _, errors = asgat(*arguments)
    assert code == 2
    assert words in errors


@pytest.mark.parametrize("name", ["graph.npz", "encoder.json", "health.json", "model.safetensors", "result.json"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"{}"])
def test_a_damaged_run_is_reported(asgat, place, name, content):
    write_graph(20, hidden=0.0)
    assert asgat(*FIT, *QUICK, "--set", "epochs=1")[0] == 0
    (place / "run" / name).write_bytes(content)
    code, _, errors = asgat("predict", "run", "-o", "p.csv")
    if (name, content) != ("result.json", b"{}"):  # an object, and nothing of it is needed
        assert code == 2
        assert errors.count("\n") == 1, errors


def write_directed_graph(nodes=60, seed=0):
    """Two classes that differ in where their links point to, and in nothing else."""
    rng = np.random.default_rng(seed)
    write("nodes.csv", [("id", "kind"), *((f"n{i}", ["buyer", "seller"][i % 2]) for i in range(nodes))])
    edges = {(2 * a, 2 * b + 1) for a, b in rng.integers(0, nodes // 2, (6 * nodes, 2)).tolist()}
    ends = sorted(edges, key=lambda edge: rng.random())
    write("edges.csv", [("source", "target"), *((f"n{a}", f"n{b}") for a, b in ends)])
    return len(edges)


def test_directed_edges_from_files_to_predictions(asgat):
    edges = write_directed_graph()
    code, output, errors = asgat(*FIT, *QUICK, "--directed", "--json", "result.json")
    assert code == 0, errors
    assert f"{edges} directed from {edges} rows; mean out-degree" in output
    assert "--directed" not in output
    assert json.loads(Path("result.json").read_bytes())["health"]["directed"] is True
    assert "directed = true" in Path("run/config.toml").read_text()
    assert np.load("run/graph.npz")["directed"].tolist() == [True]
    assert asgat("predict", "run", "-o", "own.csv")[0] == 0
    assert asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "again.csv")[0] == 0
    assert read("own.csv") == read("again.csv"), "other files are read as directed too"
    heading, *rows = lines("edges.csv")
    write("turned.csv", [heading, *(row[::-1] for row in rows)])
    assert asgat("predict", "run", "--edges", "turned.csv", "--nodes", "nodes.csv", "-o", "turned-out.csv")[0] == 0
    assert read("own.csv") != read("turned-out.csv")


def test_edges_that_seem_to_have_a_direction_are_pointed_out(asgat):
    write_directed_graph()
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert "None of the edges also run the other way. If edges have a direction, `--directed` uses it." in output
    assert "directed" not in Path("run/config.toml").read_text()
    code, _, errors = asgat(*FIT, *QUICK, "--directed")
    assert code != 0
    assert "with other settings (data, directed)" in errors or "with other settings (directed, data)" in errors


def test_a_model_that_cannot_use_directions_says_so(asgat):
    write_directed_graph()
    code, _, errors = asgat(*GIVEN, "--directed", "--model", "gcn")
    assert code == 2
    assert "gcn cannot use directions. Models that can: asgat-plus" in errors
    assert not any(path.name == "config.toml" for path in Path().rglob("*")), "nothing was written"


def add_column(name, value):
    """Adds a column to the nodes, from its row number and its row."""
    rows = lines("nodes.csv")
    own = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    write("nodes.csv", [[*rows[0], name], *[[*row, value(i, own[i])] for i, row in enumerate(rows[1:])]])


def test_a_copy_of_the_label_is_left_out_and_said_unless_the_user_keeps_it(asgat):
    write_graph()
    add_column("group", lambda i, row: {"buyer": "1", "seller": "2"}.get(row["kind"], str(1 + i % 2)))
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert "! 'group' tells the class of training and validation nodes, as a copy" in flat(output)
    write_graph(seed=1)
    assert asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")[0] == 0
    write_graph()
    add_column("group", lambda i, row: {"buyer": "1", "seller": "2"}.get(row["kind"], str(1 + i % 2)))
    code, output, errors = asgat(*FIT, *QUICK, "--categorical", "group", "--numeric", "size", "--fresh")
    assert code == 0, errors
    assert "tells the class" not in flat(output)
    assert "group=1" in json.loads(Path("run/encoder.json").read_bytes())["feature_names"]


def test_a_column_of_parts_is_the_split(asgat):
    write_graph(hidden=0.0)
    add_column("part", lambda i, _: "test" if i < 20 else "train" if i < 50 else "val")
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert "! 'part' says which part a node is in: used as the split." in flat(output)
    assert "--repeats" not in output
    assert "30 train, 10 val, 20 test" in output
    assert not any("part" in name for name in json.loads(Path("run/encoder.json").read_bytes())["feature_names"])
    assert asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")[0] == 0


def test_several_columns_of_parts_are_splits(asgat):
    write_graph(hidden=0.0)
    for number in range(2):
        add_column(f"part{number}", lambda i, _, number=number: ["train", "val", "test"][(i + number) % 3])
    code, output, errors = asgat(*FIT, *QUICK)
    assert code == 0, errors
    assert "! 'part0', 'part1' say which part a node is in: used as 2 splits." in flat(output)
    assert "There are 2 splits, of which the first is used." in flat(output)
    assert "→ --repeats 2 uses all 2 splits." in flat(output)
    assert "mean of 2 repeats" in asgat(*FIT, *QUICK, "--repeats", "2", "--fresh")[1]


def test_hints_on_labels_codes_and_edges(asgat):
    *files, _ = GIVEN
    write_graph(hidden=0.0)
    add_column("subject", lambda i, _: 235 + i % 9)
    add_column("age", lambda i, _: 30 + i % 25)
    add_column("class", lambda i, row: "?" if i % 5 == 0 else row["kind"])
    write(
        "edges.csv", [[*row, "since"] if i == 0 else [*row, 2000 + i % 9] for i, row in enumerate(lines("edges.csv"))]
    )
    code, output, errors = asgat(*files, "class", *FIT[len(GIVEN) :], *QUICK, "--ignore", "kind")
    assert code == 0, errors
    output = flat(output)
    assert "! The column 'since' of edges.csv is not used; --weight COLUMN takes one as the weight" in output
    assert "! 12 nodes are labelled '?', which is taken as a class of its own." in output
    assert "'subject' may be codes" in output
    code, output, errors = asgat(*files, "age", *FIT[len(GIVEN) :], *QUICK, "--fresh")
    assert code == 0, errors
    assert "! The label 'age' has 25 different numbers. Each is a class of its own" in flat(output)
    assert "this is classification" in flat(output)


def test_hints_on_swapped_files_and_ids(asgat):
    write_graph(prefix="")
    code, _, errors = asgat("fit", "--edges", "nodes.csv", "--nodes", "edges.csv", "--label", "kind")
    assert code == 2
    assert "Exchange --edges and --nodes" in errors
    rows = lines("edges.csv")
    write("edges.csv", [rows[0], *[[f"{cell}.0" for cell in row] for row in rows[1:]]])
    code, _, errors = asgat(*FIT, *QUICK)
    assert code == 2
    assert re.search(r"which nodes.csv does not have, nor \d+ more; nodes.csv has '\d+', so write", errors)
    assert "so write ids in one way" in errors


def flat(output):
    return " ".join(output.split())


def test_a_recipe_names_the_model_and_its_settings(asgat, place):
    write_graph()
    (place / "r.toml").write_text('model = "gcn"\n[gcn]\nhidden = 5\nepochs = 4\n[mlp]\nhidden = 3\nepochs = 4\n')
    recipe = [*GIVEN, "--recipe", "r.toml"]
    assert asgat(*recipe, "--set", "epochs=3", "--out", "first")[0] == 0
    written = tomllib.loads((place / "first" / "config.toml").read_text())
    assert (written["model"], written["config"]["hidden"], written["config"]["epochs"]) == ("gcn", 5, 3)
    assert asgat(*recipe, "--model", "mlp", "--out", "second")[0] == 0
    assert tomllib.loads((place / "second" / "config.toml").read_text())["config"]["hidden"] == 3
    assert asgat(*GIVEN, "--recipe", "first", "--out", "third")[0] == 0, "a run directory is a recipe"
    assert (place / "third" / "config.toml").read_bytes() == (place / "first" / "config.toml").read_bytes()


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("[gcn]\nheads = 3\n", [], "r.toml, gcn: gcn has no setting 'heads'"),
        ("[gcn]\nhidden = 3\n", [], "r.toml names no model; choose one with --model."),
        ("[gcn]\nhidden = 3\n", ["--model", "mlp"], "r.toml has no settings of mlp; it has gcn."),
        ('model = "nosuch"\n', [], "unknown model 'nosuch'"),
        ('model = "gcn"\n[gcn]\n', ["--directed"], "gcn cannot use directions"),
        ("[gcn\n", [], "r.toml cannot be read as TOML"),
    ],
)
def test_a_bad_recipe_is_refused(asgat, place, text, arguments, words):
    write_graph()
    (place / "r.toml").write_text(text)
    code, _, errors = asgat(*GIVEN, "--recipe", "r.toml", *arguments)
    assert code == 2
    assert words in errors
    assert not (place / "runs").exists()


def test_packed_files(asgat):
    write_graph()
    for name in ("edges", "nodes"):
        Path(f"{name}.csv.gz").write_bytes(gzip.compress(Path(f"{name}.csv").read_bytes()))
    packed = ["--edges", "edges.csv.gz", "--nodes", "nodes.csv.gz"]
    code, output, errors = asgat(
        "fit", *packed, "--label", "kind", "--model", "gcn", "--set", "epochs=3", "--json", "-"
    )
    assert code == 0, errors
    assert json.loads(output)["health"]["nodes"] == 60
    assert "on cpu with" in errors or "on cuda with" in errors
    folder = f"runs/{Path().absolute().name}-gcn-seed0"
    code, output, errors = asgat("predict", folder, *packed, "-o", "p.csv.gz", "--json", "-")
    assert code == 0, errors
    assert json.loads(output)["nodes"] == 60
    assert len(gzip.decompress(Path("p.csv.gz").read_bytes()).splitlines()) == 61
