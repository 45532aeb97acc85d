"""How much memory an operator and a training step on it will take, before any of it is allocated."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from asgat.config import ASGATConfig, ASGATDeepConfig, SpectralConfig
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.memory import available_memory
from asgat.nn import operator_size as sizes
from asgat.nn.joined_linear import in_blocks
from asgat.tables.exact_builder import build_exact
from asgat.tables.table_settings import TableSettings

SMALL = 128  # nodes up to which scoring all pairs costs less than a table
EXACT_WORK = 10**12  # multiplications up to which a table is built exactly: about a quarter of an hour on two cores

_SAMPLE = 32  # rows built to estimate how many candidates a row has
_SAMPLE_WORK = 10**9  # multiplications a sample may cost: about a second


@dataclass(frozen=True)
class Plan:
    """The memory a configuration is estimated to take on a graph.

    Attributes:
        form: ``"exact"``, ``"dense"``, ``"exact table"``, ``"truncated table"``, or ``"matrix"`` where nothing is
            scored.
        bytes: the most that is held at one time: the operator, and either what building it takes or a training step.
        parts: bytes of the ``"operator"``, of ``"building"`` it, and of the ``"attention"`` and the ``"features"`` of
            one training step.
    """

    form: str
    bytes: int
    parts: dict[str, int]


def choose_form(graph: Graph, config: SpectralConfig) -> str:
    """The form a configuration means on this graph, as in :class:`Plan`; refuses contradictory settings."""
    if config.operator == "exact":
        if config.form == "table":
            raise AsgatError("The exact form scores all pairs; a table needs operator = chebyshev.")
        return "exact"
    if not config.attends and config.operator == "chebyshev" and config.form == "auto":
        return "matrix"
    if config.form == "table" and config.k is None:
        raise AsgatError("k = none needs every pair, and a table does not hold them; set form=dense.")
    small = graph.num_nodes <= max(SMALL, config.k or graph.num_nodes)  # or every pair is kept
    if config.form == "dense" or (config.form == "auto" and small):
        return "dense"
    work = graph.num_nodes * graph.num_entries * config.order
    exact = config.builder == "exact" or (config.builder == "auto" and work <= EXACT_WORK)
    return "exact table" if exact else "truncated table"


def table_candidates(num_nodes: int, config: SpectralConfig) -> int:
    """Entries a table keeps per order and row: at least k, otherwise no more than there are nodes."""
    return max(config.k or 1, min(config.candidates, num_nodes))


def table_settings(num_nodes: int, config: SpectralConfig, form: str) -> TableSettings:
    """The settings of the table that a configuration means, of the form :func:`choose_form` found."""
    return TableSettings(
        config.order,
        table_candidates(num_nodes, config),
        config.cap,
        config.storage,
        "exact" if form == "exact table" else "truncated",
        config.neighbourhood,
    )


def plan(graph: Graph, config: SpectralConfig, device: torch.device | str = "cpu", sample: bool = True) -> Plan:
    """The estimated memory of an operator and of training on it; features and optimiser are not counted.

    Costs little: O(E), and for an exact table the rows of 32 nodes, O(R · E) each, if that is about a second or less.
    Otherwise, or without ``sample``, the number of candidates is the largest possible.
    """
    nodes, graph = graph.num_nodes, graph.spectral_graph
    form = choose_form(graph, config)
    n = graph.num_nodes
    k = n if config.k is None or (config.k > n and "table" not in form) else config.k  # a table pads its rows to k
    heads = max(_heads_of_layers(config))
    matrices = in_pair = 0
    if form == "matrix":
        size, matrices = sizes.OperatorSize(0, 0), 2
    elif form == "exact":
        size = sizes.exact_size(n, heads)
    elif form == "dense":
        arma = config.operator == "arma"
        orders = sizes.ARMA_ORDERS if arma else config.order + 1
        size = (sizes.arma_size if arma else sizes.dense_size)(n, orders, heads, config.k is None)
        matrices = 2
        in_pair = 0 if config.k is None else 4 * orders
    else:
        orders, matrices = config.order + 1, 3
        candidates, entry = table_candidates(n, config), getattr(torch, config.storage).itemsize
        if form == "truncated table":
            size = sizes.truncated_table_size(n, orders, candidates, entry)
        else:
            in_row = candidates_per_node(graph, config.order, candidates, config.cap, sample)
            size = sizes.exact_table_size(n, orders, in_row, entry, torch.device(device))
    operator = size.held + matrices * 12 * (graph.num_entries + n)
    attention, features = step_size(config, nodes, n, k, torch.device(device), in_pair)
    attention += size.scores if config.attends else 0
    parts = {"operator": operator, "building": size.building, "attention": attention, "features": features}
    return Plan(form, operator + max(size.building, attention + features), parts)


def step_size(
    config: SpectralConfig, nodes: int, rows: int, k: int, device: torch.device, in_pair: int = 0
) -> tuple[int, int]:
    """Bytes of the attention and of the features of a training step, for some nodes.

    ``rows`` are those of their operator, two per node of a double cover; ``in_pair`` are more bytes per attended pair.
    """
    pair = 36  # position, index, score, weight, dropout and two gradients
    layers = _heads_of_layers(config)
    attention = sum(layers) * rows * k * (pair + in_pair) if config.attends else 0
    if isinstance(config, ASGATDeepConfig):
        per_node = _rows_per_node(config, nodes, device)
    else:
        per_node = sum(4 * heads + 2 for heads in layers)
    return attention, per_node * 4 * rows * config.hidden


def _heads_of_layers(config: SpectralConfig) -> list[int]:
    last = config.out_heads if isinstance(config, ASGATConfig) else config.heads
    return [config.heads] * (config.layers - 1) + [last]


def _rows_per_node(config: ASGATDeepConfig, nodes: int, device: torch.device) -> int:
    """Rows of the hidden size per node that a training step holds for all blocks, and works with in one of them."""
    kinds = config.channels.split("+")
    others = len(set(kinds) - {"attention"})
    joined = 1 + config.heads * config.attends + others
    blocked = computes_in_blocks(config, nodes, device)
    held = 5 + config.attends + (others if blocked else joined)
    worked = 2 + others if blocked else joined  # one head after the other
    orders = config.order + 3 if "filters" in kinds and device.type != "cpu" else 0  # the gradient of a filter
    return config.layers * held + worked + 6 + orders


def computes_in_blocks(config: SpectralConfig, nodes: int, device: torch.device) -> bool:
    """Whether a model computes joined rows a block at a time, and returns freed memory before that."""
    deep = isinstance(config, ASGATDeepConfig) and config.attends
    return deep and in_blocks(nodes, device)


def check_plan(graph: Graph, config: SpectralConfig, device: torch.device | str = "cpu") -> Plan:
    """The plan, or an error that names settings that fit if it takes more memory than is available."""
    free = available_memory(device)
    largest = plan(graph, config, device, sample=False)
    if free is None or largest.bytes <= free:
        return largest
    likely = plan(graph, config, device)
    if likely.bytes <= free:
        return likely
    fitting = (
        f"{_words(changes)} ({_size(needed)})"
        for changes in _alternatives(config, likely.form, graph.num_nodes)
        if (needed := plan(graph, config.replace(**changes), device).bytes) <= free
    )
    first = "; ".join(islice(fitting, 3))
    advice = f"these fit: {first}." if first else "no other settings fit; use a larger machine."
    raise AsgatError(
        f"The {likely.form} form needs about {_size(likely.bytes)}, but only {_size(free)} are available; {advice}"
    )


def candidates_per_node(graph: Graph, order: int, candidates: int, cap: int, sample: bool = True) -> float:
    """Mean number of candidates in a row of an exact table, from a few random rows, or else the largest possible."""
    n = graph.num_nodes
    if n == 0:
        return 0.0
    if sample and (graph.num_entries + n) * order * _SAMPLE <= _SAMPLE_WORK:
        rows = np.random.default_rng(0).permutation(n)[:_SAMPLE]
        return build_exact(graph.shifted, order, candidates, cap, rows).candidates_per_node
    neighbours = float(np.minimum(np.diff(graph.adjacency.indptr), cap).mean())
    return min(float(n), 1 + neighbours + order * candidates)


def _alternatives(config: SpectralConfig, form: str, num_nodes: int) -> Iterator[dict[str, Any]]:
    """Changes of the settings, the smallest first."""
    start: dict[str, Any] = {}
    if "table" in form and config.k is not None and config.k > num_nodes:
        yield {"k": num_nodes}
    if form in ("exact", "dense"):
        start["form"] = "table"
        if form == "exact":
            start["operator"] = "chebyshev"
        if config.k is None:
            start["k"] = 10
        yield start
    fewer = max(start.get("k") or config.k or 1, config.candidates // 2)
    steps: list[dict[str, Any]] = []
    if config.storage != "float16":
        steps.append({"storage": "float16"})
    if fewer < config.candidates:
        steps.append({"candidates": fewer})
    if config.order > 8:
        steps.append({"order": 8})
    combined = start
    for step in steps:
        yield {**start, **step}
        if combined != start:
            yield {**combined, **step}
        combined = {**combined, **step}
    if form != "truncated table":
        yield {**start, "builder": "truncated"}
        yield {**combined, "builder": "truncated"}


def _words(changes: dict[str, Any]) -> str:
    """``form=table with candidates=16, order=8``."""
    first, *others = [f"{key}={str(value).lower()}" for key, value in changes.items()]
    return first + (f" with {', '.join(others)}" if others else "")


def _size(count: int) -> str:
    gib = count / 2**30
    return f"{gib:.1f} GiB" if gib < 10 else f"{gib:,.0f} GiB"
