"""Estimates against what is really allocated, and refusals that name what would fit."""

import importlib
import re
from typing import Any

import numpy as np
import pytest
import torch
from tests.strategies import ZOO
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from asgat.config import ASGATConfig, ASGATDeepConfig
from asgat.data import contextual_sbm
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.nn import joined_linear, memory_plan
from asgat.nn.from_config import make_operator
from asgat.nn.memory_plan import candidates_per_node, check_plan, choose_form, plan, table_candidates
from asgat.spectral import ArmaOperator, ExactOperator
from asgat.tables import TableOperator
from asgat.training.program import EagerEpochs, one_run
from asgat.training.runner import make_task, step_bytes

GIB = 1 << 30
MEDIUM = contextual_sbm(num_nodes=600, mean_degree=4.0, num_features=2).graph


def hub(leaves: int = 400) -> Graph:
    return Graph.from_edges([[0] * leaves, list(range(1, leaves + 1))])


def made(nodes: int = 60_000, degree: int = 10) -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_edges(rng.integers(0, nodes, (2, nodes * degree // 2)), nodes)


@pytest.fixture
def free(monkeypatch):
    """A function that sets how much memory is available."""
    return lambda gib: monkeypatch.setattr(memory_plan, "available_memory", lambda device="cpu": round(gib * GIB))


def nbytes(operator: Any) -> int:
    if isinstance(operator, TableOperator):
        extra = 0 if operator.rows._magnitude is None else operator.rows._magnitude.nbytes
        return int(operator.table.nbytes + extra)
    if isinstance(operator, ExactOperator):
        return int(operator.eigenvectors.nbytes + operator._decomposition[1].nbytes)
    assert operator._cached is not None
    return int(sum(part.nbytes for part in operator._cached))


# -- estimates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {"form": "dense"},
        {"form": "dense", "order": 4},
        {"operator": "exact"},
        {"form": "table"},
        {"form": "table", "storage": "float16", "order": 6},
        {"form": "table", "candidates": 10, "cap": 2},
        {"form": "table", "candidates": 4, "k": 20},
        {"form": "table", "builder": "truncated", "candidates": 16},
        {"form": "table", "builder": "truncated", "order": 4, "storage": "float16"},
    ],
    ids=str,
)
@pytest.mark.parametrize("graph", [MEDIUM, hub()], ids=["block model", "hub"])
def test_estimates_are_within_a_factor_of_two_of_what_is_kept(graph, values):
    config = ASGATConfig(**values)
    real, estimate = nbytes(make_operator(graph, config)), plan(graph, config)
    assert real / 2 < estimate.parts["operator"] < 2 * real
    assert estimate.bytes >= estimate.parts["operator"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"operator": "exact"}, {"operator": 12 * 500**2, "building": 24 * 500**2, "attention": 36 * 500**2 + 576_000}),
        ({"operator": "exact", "k": None}, {"attention": (36 + 8 * 36) * 500**2}),
        (
            {"form": "dense"},
            {"operator": 33 * 500**2 + 35_952, "building": 140 * 500**2, "attention": 140 * 500**2 + 16_000 * 68},
        ),
        ({"form": "dense", "k": None}, {"building": 140 * 500**2, "attention": (24 + 8 * 36) * 500**2}),
        (
            {"operator": "arma", "form": "dense"},
            {"operator": 35_952, "building": 0, "attention": (3 * 144 + 12) * 500**2 + 16_000 * 112},
        ),
        ({"operator": "arma", "form": "dense", "k": None}, {"attention": (3 * 144 + 12 + 8 * 36) * 500**2}),
        (
            {"form": "table"},
            {"operator": 809_928 + 500 * 169 + 53_928, "building": 809_928 + 500 * 65 * 48, "attention": 576_000},
        ),
        (
            {"form": "table", "builder": "truncated"},
            {"operator": 500 * 6 * 36 + 4_500 + 53_928, "building": 32_000 + (64 << 20), "attention": 576_000},
        ),
    ],
    ids=str,
)
def test_estimates_to_the_byte(values, expected, monkeypatch):
    """A path of 500 nodes: 998 entries, so a matrix is 12 · 1,498 = 17,976 bytes; 8 heads keep 16,000 pairs."""
    monkeypatch.setattr("asgat.threads._given", 3)
    path = Graph.from_edges([list(range(499)), list(range(1, 500))])
    small: dict[str, Any] = {"heads": 3, "out_heads": 2, "layers": 3, "hidden": 8, "order": 7}
    small |= {"candidates": 6, "k": 4}
    estimate = plan(path, ASGATConfig(**small | values), sample=False)
    parts = estimate.parts
    assert {key: parts[key] for key in expected} == expected
    assert parts["features"] == 16 * 8 * 500 * 8 + 3 * 8 * 500 * 8
    assert estimate.bytes == parts["operator"] + max(parts["building"], parts["attention"] + parts["features"])


@pytest.mark.parametrize("k", [5, None])
def test_estimates_of_conjugate_gradients_hold_what_a_layer_works_with(k):
    """The terms of all rows at once, or of one block, and the matrices of the denominators."""
    config = ASGATConfig(operator="arma", form="dense", heads=3, k=k)
    estimate = plan(MEDIUM, config)
    operator = make_operator(MEDIUM, config)
    assert isinstance(operator, ArmaOperator)
    rows = next(operator._blocks(3)).stop if k else MEDIUM.num_nodes
    terms = 4 * 19 * 3 * rows * MEDIUM.num_nodes
    matrices = 4 * 3 * MEDIUM.num_nodes**2
    assert terms + matrices < estimate.parts["attention"] < 3 * (terms + matrices)


class Largest(TorchDispatchMode):
    """Follows the bytes of tensors that are made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[Any, int] = {}
        self.total = self.bytes = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **kwargs or {})
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if (reference := StorageWeakRef(storage)) not in self.held:
                    self.held[reference] = storage.nbytes()
                    self.total += storage.nbytes()
        if self.total > self.bytes:  # with storages that are free again, which count only now
            self.held = {storage: size for storage, size in self.held.items() if not storage.expired()}
            self.total = sum(self.held.values())
            self.bytes = max(self.bytes, self.total)
        return made


@pytest.mark.parametrize("limit", [0, 10**6], ids=["in blocks", "stored"])
@pytest.mark.parametrize(
    "values",
    [{}, {"layers": 5}, {"channels": "filters", "layers": 4}, {"channels": "attention", "heads": 8}, {"dropout": 0.0}],
    ids=str,
)
def test_estimates_of_a_deep_step_hold_what_it_allocates(monkeypatch, values, limit):
    monkeypatch.setattr(joined_linear, "IN_BLOCKS", limit)
    for module in ("gather_linear", "cpu.chebyshev"):
        monkeypatch.setattr(importlib.import_module(f"asgat.kernels.{module}"), "ROWS", 64)
    data = contextual_sbm(num_nodes=2000, mean_degree=10.0, num_features=4)
    own: dict[str, Any] = {"layers": 2, "heads": 4, "hidden": 64, "order": 8, "candidates": 16, "builder": "truncated"}
    config = ASGATDeepConfig(**own | values)
    program = one_run(make_task(data, "asgat-deep", config, torch.device("cpu")), data.splits[0], config)
    epochs = EagerEpochs(program)
    epochs.run(1)
    with Largest() as seen:
        epochs.run(1)
    assert seen.bytes < step_bytes(data, config, torch.device("cpu")) < 2 * seen.bytes


def test_without_a_sample_the_estimate_is_no_smaller():
    config = ASGATConfig(form="table", candidates=8)
    real = nbytes(make_operator(MEDIUM, config))
    assert plan(MEDIUM, config, sample=False).parts["operator"] >= max(real, plan(MEDIUM, config).parts["operator"])


@pytest.mark.parametrize(("candidates", "cap", "order"), [(3, 0, 4), (16, 256, 6), (1000, 1000, 3)])
def test_candidates_per_node(candidates, cap, order):
    real = TableOperator(MEDIUM, order, candidates=candidates, cap=cap).table.candidates_per_node
    assert candidates_per_node(MEDIUM, order, candidates, cap) == pytest.approx(real, rel=0.3)
    assert candidates_per_node(MEDIUM, order, candidates, cap, sample=False) >= real
    assert candidates_per_node(ZOO["no nodes"], order, candidates, cap) == 0.0


def test_candidates_are_counted_where_that_costs_little(monkeypatch):
    graph = contextual_sbm(num_nodes=32, mean_degree=4.0, num_features=2).graph
    real = TableOperator(graph, 4, candidates=3, cap=2).table.candidates_per_node
    monkeypatch.setattr(memory_plan, "_SAMPLE_WORK", (graph.num_entries + 32) * 4 * 32)
    assert candidates_per_node(graph, 4, 3, 2) == real, "all of its rows were built"
    monkeypatch.setattr(memory_plan, "_SAMPLE_WORK", (graph.num_entries + 32) * 4 * 32 - 1)
    degree = np.diff(graph.adjacency.indptr)
    assert candidates_per_node(graph, 4, 3, 2) == 1 + np.minimum(degree, 2).mean() + 12
    assert candidates_per_node(graph, 4, 9, 2) == 32.0


def test_large_graphs_are_truncated_unless_settings_say_otherwise(monkeypatch):
    monkeypatch.setattr(memory_plan, "EXACT_WORK", MEDIUM.num_nodes * MEDIUM.num_entries * 15)
    assert choose_form(MEDIUM, ASGATConfig(order=15)) == "exact table"
    assert choose_form(MEDIUM, ASGATConfig(order=16)) == "truncated table"
    assert choose_form(MEDIUM, ASGATConfig(order=16, builder="exact")) == "exact table"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"operator": "exact", "form": "table"}, "The exact form scores all pairs"),
        ({"form": "table", "k": None}, "k = none needs every pair, and a table does not hold them; set form=dense"),
    ],
)
def test_settings_that_contradict(values, sentence):
    with pytest.raises(AsgatError, match=sentence):
        make_operator(MEDIUM, ASGATConfig(**values))


@pytest.mark.parametrize("key", ["heads", "k", "hidden", "layers", "order", "candidates"])
def test_more_of_anything_takes_more(key):
    config = ASGATConfig(form="table", heads=4, k=5, hidden=16, layers=3, order=6, candidates=8)
    more = config.replace(**{key: 2 * getattr(config, key)})
    before, after = (sum(plan(MEDIUM, c).parts.values()) for c in (config, more))
    assert after > 1.05 * before


def test_the_step_is_counted_for_every_layer_and_head():
    config = ASGATConfig(form="table", heads=4, out_heads=3, k=5, hidden=16, layers=3)
    parts = plan(MEDIUM, config).parts
    pairs = (4 + 4 + 3) * 600 * 5
    assert 20 * pairs <= parts["attention"] <= 50 * pairs
    assert parts["features"] >= 4 * 11 * 600 * 16 * 3
    everything = plan(MEDIUM, config.replace(form="dense", k=None)).parts
    assert everything["attention"] >= 11 * 600 * 600 * 20


def test_large_graphs_are_planned():
    """Their tables are not built for it, which would take minutes."""
    graph = made()
    for builder in ("exact", "truncated"):
        assert plan(graph, ASGATConfig(form="table", builder=builder, order=8)).bytes > GIB / 8


# -- refusals ----------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_with_settings_that_do(free):
    graph = contextual_sbm(num_nodes=3000, mean_degree=4.0, num_features=2).graph
    config = ASGATConfig(form="dense", k=None)
    assert plan(graph, config).bytes > 2 * GIB
    free(1.0)
    with pytest.raises(AsgatError) as caught:
        make_operator(graph, config)
    sentence = str(caught.value)
    assert re.match(r"The dense form needs about [\d.]+ GiB, but only 1\.0 GiB are available; these fit: ", sentence)
    offers = re.findall(r"(form=table with k=10[^();]*) \(([\d.]+) GiB\)", sentence)
    assert 1 <= len(offers) <= 3
    for words, size in offers:
        changes = {key: config.parse(key, text) for key, text in re.findall(r"(\w+)=(\w+)", words)}
        estimate = check_plan(graph, config.replace(**changes))
        assert estimate.bytes <= GIB
        assert f"{estimate.bytes / GIB:.1f}" == size or estimate.form == "exact table"  # checked without a sample


@pytest.mark.parametrize(
    ("values", "offered"),
    [
        ({"builder": "exact"}, {"storage=float16", "candidates=16", "order=8", "builder=truncated"}),
        ({"builder": "truncated", "candidates": 64}, {"storage=float16", "candidates=32", "order=8"}),
        ({"builder": "truncated", "storage": "float16"}, {"candidates=16", "order=8"}),
        (
            {"builder": "truncated", "storage": "float16", "candidates": 10, "order": 20},
            {"order=8"},
        ),
    ],
)
def test_tables_are_offered_smaller_tables(free, values, offered):
    config, graph = ASGATConfig(form="table", heads=1, hidden=1, layers=1, **values), MEDIUM
    needed = plan(graph, config).bytes
    free(0.999 * needed / GIB)
    with pytest.raises(AsgatError, match="these fit") as caught:
        check_plan(graph, config)
    words = set(re.findall(r"\w+=\w+", str(caught.value).split("these fit")[1]))
    assert words
    assert words <= offered
    free(1.001 * plan(graph, config, sample=False).bytes / GIB)
    assert check_plan(graph, config).form.endswith("table")


def test_the_smallest_changes_come_first():
    assert list(memory_plan._alternatives(ASGATConfig(order=15, candidates=32, k=None), "exact", 600)) == [
        (start := {"form": "table", "operator": "chebyshev", "k": 10}),
        {**start, "storage": "float16"},
        {**start, "candidates": 16},
        {**start, "storage": "float16", "candidates": 16},
        {**start, "order": 8},
        {**start, "storage": "float16", "candidates": 16, "order": 8},
        {**start, "builder": "truncated"},
        {**start, "storage": "float16", "candidates": 16, "order": 8, "builder": "truncated"},
    ]


def test_no_more_than_three_are_offered(free):
    config = ASGATConfig(form="dense", k=None)
    needed = plan(MEDIUM, config).bytes
    free(0.9 * needed / GIB)
    with pytest.raises(AsgatError, match="these fit") as caught:
        check_plan(MEDIUM, config)
    assert str(caught.value).count("form=table") == 3


def test_the_sample_decides_where_the_largest_number_of_candidates_would_not_fit(free):
    config = ASGATConfig(form="table", heads=1, hidden=1, layers=1, candidates=8)
    likely, largest = plan(MEDIUM, config).bytes, plan(MEDIUM, config, sample=False).bytes
    assert largest > 1.2 * likely
    free((likely + largest) / 2 / GIB)
    assert check_plan(MEDIUM, config).bytes == likely


def test_the_exact_form_is_offered_another_operator(free):
    free(0.25)
    graph = contextual_sbm(num_nodes=3000, mean_degree=4.0, num_features=2).graph
    with pytest.raises(AsgatError, match=r"The exact form needs about 0\.3 GiB.*form=table with operator=chebyshev"):
        check_plan(graph, ASGATConfig(operator="exact", heads=1, hidden=2))


def test_a_k_above_the_number_of_nodes_costs_no_more_than_all_nodes(free):
    small = contextual_sbm(num_nodes=60, mean_degree=4.0, num_features=2).graph
    for graph in (small, MEDIUM):
        all_nodes, huge = (plan(graph, ASGATConfig(k=k)) for k in (graph.num_nodes, 1_000_000))
        assert huge == all_nodes
    assert check_plan(small, ASGATConfig(k=1_000_000)).bytes < GIB // 16
    assert (table_candidates(60, ASGATConfig()), table_candidates(20, ASGATConfig())) == (32, 20)
    assert table_candidates(20, ASGATConfig(k=25)) == 25, "as many as can be asked for"


def test_a_table_is_offered_the_number_of_nodes_as_k(free):
    free(1.0)
    with pytest.raises(AsgatError, match=r"needs about [\d.,]+ GiB.*these fit: k=600 \("):
        check_plan(MEDIUM, ASGATConfig(form="table", k=1_000_000))


def test_where_nothing_fits_nothing_is_offered(free):
    free(0.0)
    with pytest.raises(AsgatError, match=r"but only 0\.0 GiB are available; no other settings fit"):
        make_operator(MEDIUM, ASGATConfig())


@pytest.mark.parametrize(
    "values", [{}, {"form": "table"}, {"form": "dense"}, {"k": None}, {"operator": "exact"}], ids=str
)
def test_small_graphs_are_never_refused(free, values):
    free(0.25)
    for graph in ZOO.values():
        assert check_plan(graph, ASGATConfig(**values)).bytes < GIB // 4


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory_plan, "available_memory", lambda device="cpu": None)
    assert check_plan(MEDIUM, ASGATConfig(form="dense", k=None)).form == "dense"
