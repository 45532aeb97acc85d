"""``python -m reproduce bench``."""

import json
from functools import partial

import pytest

from reproduce.bench import scale

ROW = {"build_s": 1.0, "epoch_s": 0.5, "peak_memory_mb": 10.0, "edges": 7, "certified_share": 0.5,
       "mean_bound": 1e-3, "max_bound": 1e-2}  # fmt: skip


@pytest.fixture
def bench(reproduce):
    return partial(reproduce, "bench")


def read(path):
    values = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    assert isinstance(values["rows"], list)
    return values


def test_epoch(bench, small, place):
    code, output, _ = bench("epoch", "--datasets", "karate", "--repeats", 1, "--json", "epoch.json")
    assert code == 0
    assert "karate" in output
    values = read(place / "epoch.json")
    assert values["device"] == "cpu"
    assert [row["dataset"] for row in values["rows"]] == ["karate"]
    assert values["rows"][0]["speedup_vs_gat"] > 0


def test_epoch_of_the_deep_model(bench, small, place):
    settings = ["--set", "channels=filters", "--set", "order=3", "--set", "hidden=4"]
    code, output, _ = bench(
        "epoch", "--model", "asgat-deep", "--datasets", "karate", "--repeats", 1, *settings, "--json", "epoch.json"
    )
    assert code == 0
    assert "karate" in output
    (row,) = read(place / "epoch.json")["rows"]
    assert (row["products_per_layer"], row["hidden"]) == (3, 4)


def test_certificate(bench, small, place):
    code, output, _ = bench("certificate", "--datasets", "karate, csbm", "--epochs", 2, "--json", "sub/c.json")
    assert code == 0
    assert "karate" in output
    rows = read(place / "sub" / "c.json")["rows"]
    assert [row["violations"] for row in rows] == [0, 0]


def test_scale(bench, monkeypatch, place):
    asked = []

    def fake(nodes, device, progress, model):
        asked.append((nodes, str(device), model))
        return {"rows": [{**ROW, "nodes": n} for n in nodes], "exponent_build": 1.25, "exponent_epoch": None}

    monkeypatch.setattr(scale, "bench_scale", fake)
    code, output, _ = bench("scale", "--nodes", "1_000, 2000", "--model", "asgat-deep", "--json", "scale.json")
    assert code == 0
    assert asked == [([1000, 2000], "cpu", "asgat-deep")]
    assert "Growth of asgat-deep" in output
    assert "1,000" in output
    assert "build 1.25, epoch –" in output
    values = read(place / "scale.json")
    assert [row["nodes"] for row in values["rows"]] == [1000, 2000]
    assert (values["exponent_build"], values["exponent_epoch"]) == (1.25, None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["epoch", "--datasets", "koraa"], "'koraa'"),
        (["certificate", "--datasets", "koraa"], "'koraa'"),
        (["epoch", "--datasets", "karate"], "No published settings for 'karate'"),
        (["epoch", "--datasets", " , "], "--datasets is empty; give names separated by commas."),
        (["certificate", "--datasets", ""], "--datasets is empty"),
        (["epoch", "--model", "gcn"], "--model must be asgat-cheb or asgat-deep, not 'gcn'."),
        (["scale", "--model", "gcn"], "--model must be asgat-cheb or asgat-deep, not 'gcn'."),
        (["epoch", "--model", "asgat-deep", "--datasets", "koraa"], "'koraa'"),
        (["scale", "--nodes", ""], "--nodes must be whole numbers separated by commas, not ''."),
        (["scale", "--nodes", "1000,many"], "--nodes must be whole numbers separated by commas, not '1000,many'."),
        (["scale", "--nodes", "1e5"], "--nodes must be whole numbers separated by commas, not '1e5'."),
        (["scale", "--nodes", "1000,99"], "--nodes must be at least 100 each, but one is 99."),
        (["scale", "--nodes", "-5"], "--nodes must be at least 100 each, but one is -5."),
        (["epoch", "--device", "gpu"], "Unknown device 'gpu'; use auto, cpu or cuda."),
        (["certificate", "--device", "cuda:99"], "cuda:99 was requested"),
        (["scale", "--device", "meta"], "Unknown device 'meta'; use auto, cpu or cuda."),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(refused, arguments, sentence):
    assert sentence in refused("bench", *arguments)


def test_no_arguments_print_the_commands(bench):
    _, output, errors = bench()
    assert all(name in output + errors for name in ("epoch", "certificate", "scale"))


def test_start_prints_ratios(bench, place, monkeypatch):
    row = {"wall_s": 1.5, "cpu_s": 1.0, "wall_ratio": 0.5, "cpu_ratio": 0.25, "cpu_over_torch_s": -3.0}
    monkeypatch.setattr("reproduce.bench.start.bench_start", lambda say, repeats: [{"what": "import asgat", **row}])
    code, output, _ = bench("start", "--repeats", "2", "--json", "start.json")
    assert code == 0
    assert "import asgat 1.50 0.50 1.00 0.25 -3.00" in " ".join(output.split())
    assert json.loads((place / "start.json").read_text()) == {"rows": [{"what": "import asgat", **row}]}
