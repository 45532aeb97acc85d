"""``asgat bench`` as the installed command runs it."""

import json
import sys

import pytest

from asgat.bench import scale
from asgat.cli import app as cli
from asgat.cli.bench import names
from asgat.errors import AsgatError

ROW = {"build_s": 1.0, "epoch_s": 0.5, "peak_memory_mb": 10.0, "edges": 7, "certified_share": 0.5,
       "mean_bound": 1e-3, "max_bound": 1e-2}  # fmt: skip


@pytest.fixture
def asgat(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["asgat", "bench", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output, errors = capsys.readouterr()
        return ended.value.code or 0, output, " ".join(errors.split())

    return call


def read(path):
    values = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    assert isinstance(values["rows"], list)
    return values


def test_epoch(asgat, small, tmp_path):
    code, output, _ = asgat("epoch", "--datasets", "karate", "--repeats", 1, "--json", "epoch.json")
    assert code == 0
    assert "karate" in output
    values = read(tmp_path / "epoch.json")
    assert values["device"] == "cpu"
    assert [row["dataset"] for row in values["rows"]] == ["karate"]
    assert values["rows"][0]["speedup_vs_gat"] > 0


def test_certificate(asgat, small, tmp_path):
    code, output, _ = asgat("certificate", "--datasets", "karate, karate", "--epochs", 2, "--json", "sub/c.json")
    assert code == 0
    assert "karate" in output
    rows = read(tmp_path / "sub" / "c.json")["rows"]
    assert [row["violations"] for row in rows] == [0, 0]


def test_scale(asgat, monkeypatch, tmp_path):
    asked = []

    def fake(nodes, device, progress):
        asked.append((nodes, str(device)))
        return {"rows": [{**ROW, "nodes": n} for n in nodes], "exponent_build": 1.25, "exponent_epoch": None}

    monkeypatch.setattr(scale, "bench_scale", fake)
    code, output, _ = asgat("scale", "--nodes", "1_000, 2000", "--json", "scale.json")
    assert code == 0
    assert asked == [([1000, 2000], "cpu")]
    assert "1,000" in output
    assert "build 1.25, epoch –" in output
    values = read(tmp_path / "scale.json")
    assert [row["nodes"] for row in values["rows"]] == [1000, 2000]
    assert (values["exponent_build"], values["exponent_epoch"]) == (1.25, None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["epoch", "--datasets", "koraa"], "'koraa'"),
        (["certificate", "--datasets", "koraa"], "'koraa'"),
        (["epoch", "--datasets", "karate"], "No published settings for 'karate'"),
        (["epoch", "--datasets", " , "], "The list is empty; give names with commas between them."),
        (["certificate", "--datasets", ""], "The list is empty"),
        (["scale", "--nodes", ""], "--nodes must be whole numbers with commas, not ''."),
        (["scale", "--nodes", "1000,many"], "--nodes must be whole numbers with commas, not '1000,many'."),
        (["scale", "--nodes", "1e5"], "--nodes must be whole numbers with commas, not '1e5'."),
        (["scale", "--nodes", "1000,99"], "--nodes must be at least 100 each, but one is 99."),
        (["scale", "--nodes", "-5"], "--nodes must be at least 100 each, but one is -5."),
        (["epoch", "--device", "gpu"], "Unknown device 'gpu'; use cpu or cuda."),
        (["certificate", "--device", "cuda:99"], "cuda:99 was asked for"),
        (["scale", "--device", "meta"], "Unknown device 'meta'; use cpu or cuda."),
        (["scale", "--json", "."], "cannot be written; choose another place."),
    ],
    ids=str,
)
def test_bad_input_ends_in_a_sentence(asgat, tmp_path, arguments, sentence):
    code, _, errors = asgat(*arguments)
    assert code == 2
    assert errors.startswith("error: ")
    assert sentence in errors
    assert errors.endswith((".", "?"))
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_no_arguments_print_the_commands(asgat):
    _, output, errors = asgat()
    assert all(name in output + errors for name in ("epoch", "certificate", "scale"))


def test_names():
    assert names("a, b,,c ") == ["a", "b", "c"]
    with pytest.raises(AsgatError, match="The list is empty"):
        names(",")
