import math
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.nn.registry import make_config
from reproduce.bench import scale
from reproduce.bench.scale import SETTINGS, bench_scale, exponent, measure

CPU = torch.device("cpu")
NAMES = {"nodes", "edges", "build_s", "epoch_s", "peak_memory_mb"}


every_model = pytest.mark.parametrize("model", list(SETTINGS))


@pytest.fixture
def in_process(monkeypatch):
    """Measures in this process: memory is not tested here."""
    pool = SimpleNamespace(apply=lambda function, arguments: function(*arguments))
    monkeypatch.setattr(scale, "get_context", lambda kind: SimpleNamespace(Pool=lambda count: nullcontext(pool)))


@given(st.floats(-2, 3), st.floats(0.01, 100), st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True))
def test_the_exponent_of_a_power_is_found(power, factor, sizes):
    rows = [{"nodes": n, "t": factor * float(n) ** power} for n in sizes]
    near = [n for n in sizes if 10 * n >= max(sizes)]
    if len(near) < 2:
        assert exponent(rows, "t") is None
    else:
        assert exponent(rows, "t") == pytest.approx(power, abs=1e-5)


def test_the_exponent_is_that_of_the_last_factor_of_ten():
    rows = [{"nodes": n, "t": t} for n, t in ((100, 50.0), (1000, 3.0), (10_000, 30.0))]
    assert exponent(rows, "t") == pytest.approx(1.0)
    assert exponent(rows[:1], "t") is None
    assert exponent([rows[0], rows[0]], "t") is None
    noisy = [{"nodes": n, "t": t} for n, t in ((1000, 1.0), (2000, 2.5), (10_000, 9.0))]
    x = [math.log(row["nodes"]) for row in noisy]
    y = [math.log(row["t"]) for row in noisy]
    middle = sum(x) / 3, sum(y) / 3
    slope = sum((a - middle[0]) * (b - middle[1]) for a, b in zip(x, y, strict=True))
    assert exponent(noisy, "t") == pytest.approx(slope / sum((a - middle[0]) ** 2 for a in x))


@every_model
def test_rows_by_size_and_exponents_at_the_top(in_process, model):
    said: list[str] = []
    result = bench_scale([400, 200], CPU, said.append, model)
    assert (result["model"], result["settings"]) == (model, SETTINGS[model])
    assert [row["nodes"] for row in result["rows"]] == [200, 400]
    for row in result["rows"]:
        assert set(row) >= NAMES | {"certified_share", "mean_bound", "max_bound", "candidates_per_node"}
        assert all(math.isfinite(row[key]) and row[key] > 0 for key in NAMES)
        assert row["candidates_per_node"] <= SETTINGS[model]["candidates"]
        assert 0 <= row["certified_share"] <= 1
        assert row["edges"] == pytest.approx(10 * row["nodes"], rel=0.1)
    for key, figure in (("exponent_build", "build_s"), ("exponent_epoch", "epoch_s")):
        assert result[key] == exponent(result["rows"], figure)
    assert said == ["400 nodes", "200 nodes"]


def test_one_size_has_no_exponent(in_process, monkeypatch):
    row = {"nodes": 100, "build_s": 1.0, "epoch_s": 2.0}
    monkeypatch.setattr(scale, "measure", lambda nodes, device, model, reuse: row)
    result = bench_scale([100], CPU, print)
    assert (result["rows"], result["exponent_build"], result["exponent_epoch"]) == ([row], None, None)


@pytest.mark.parametrize("fits", [True, False])
def test_all_sizes_reuse_memory_as_the_largest_can(in_process, monkeypatch, fits):
    asked: list[tuple[int, bool]] = []

    def row(nodes, device, model, reuse):
        asked.append((nodes, reuse))
        return {"nodes": nodes, "build_s": 1.0, "epoch_s": 2.0, "memory_reused": reuse and fits}

    monkeypatch.setattr(scale, "measure", row)
    bench_scale([100, 300, 200], CPU, print)
    assert asked == [(300, True), (200, fits), (100, fits)]


@every_model
def test_the_settings(model):
    config = make_config(model, **SETTINGS[model]).to_dict()
    wanted = {"order": 8, "heads": 4, "k": 8, "builder": "truncated", "form": "table", "layers": 2}
    wanted |= {"hidden": 64, "channels": "attention+filters"} if model == "asgat-deep" else {"hidden": 16}
    assert wanted.items() <= config.items()
    assert config["candidates"] >= 48


def test_a_size_can_be_measured_in_a_separate_process():
    """The function can be pickled."""
    import pickle

    assert pickle.loads(pickle.dumps(measure)) is measure
