"""How much memory an operator and a training step on it will take, before any of it is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tables.exact_builder import WIDTH, build_exact

SMALL = 128  # nodes up to which scoring all pairs costs less than a table
EXACT_WORK = 10**12  # multiplications up to which a table is built exactly: about a quarter of an hour on two cores

_CACHE, _BLOCK = 4 << 30, 1 << 30  # what a dense Chebyshev operator keeps and works with at most
_DEVICE_BLOCK = 4 << 30  # working memory of the exact builder on an accelerator
_SAMPLE = 32  # rows built to see how many candidates a row has
_SAMPLE_WORK = 10**9  # multiplications a sample may cost: about a second
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Plan:
    """The memory a configuration is estimated to take on a graph.

    Attributes:
        form: what it is an estimate of: ``"exact"``, ``"dense"``, ``"exact table"`` or ``"truncated table"``.
        bytes: of everything that is held at one time, at most: the operator, and beside it either what building it
            takes or a training step.
        parts: bytes of the ``"operator"``, of ``"building"`` it, and of the ``"attention"`` and the ``"features"`` of
            one training step.
    """

    form: str
    bytes: int
    parts: dict[str, int]


def choose_form(graph: Graph, config: ASGATConfig) -> str:
    """The form a configuration stands for on this graph, as in :class:`Plan`; refuses settings that contradict."""
    if config.operator == "exact":
        if config.form == "table":
            raise AsgatError("The exact form scores all pairs; a table goes with operator = chebyshev.")
        return "exact"
    all_pairs = config.k is None or config.include_unreachable
    if config.form == "table" and all_pairs:
        raise AsgatError("k = none and include_unreachable need every pair, which no table holds; set form=dense.")
    if config.form == "dense" or all_pairs or (config.form == "auto" and graph.num_nodes <= SMALL):
        return "dense"
    if config.operator == "arma" and config.tolerance is not None:
        raise AsgatError(
            "A tolerance widens the rows of a table, which leaves what the expansion of arma loses as it is; "
            "raise order instead, and set tolerance=none."
        )
    work = graph.num_nodes * graph.num_entries * config.order
    exact = config.builder == "exact" or (config.builder == "auto" and work <= EXACT_WORK)
    if not exact and config.tolerance is not None:
        raise AsgatError(
            "A tolerance needs a table that is built exactly, and this one is truncated; set builder=exact or "
            "tolerance=none."
        )
    return "exact table" if exact else "truncated table"


def plan(graph: Graph, config: ASGATConfig, device: torch.device | str = "cpu", sample: bool = True) -> Plan:
    """The estimated memory of an operator and of training on it; features and optimiser are not counted.

    Costs little: O(E), and for an exact table the rows of 32 nodes, O(R · E) each, if that is about a second or less.
    Otherwise, or without ``sample``, the number of candidates is the largest there can be.
    """
    form = choose_form(graph, config)
    n, orders = graph.num_nodes, config.order + 1
    layers = [config.heads] * (config.layers - 1) + [config.out_heads]
    # Positions, indices, scores, weights, dropout and two gradients of every kept pair.
    attention = sum(layers) * n * (config.k or 0) * (60 if config.exact_sums else 36)
    matrix = 12 * (graph.num_entries + n)
    if form == "exact":
        operator, building = n * n * (8 + 4), 3 * n * n * 8
        attention = 3 * max(layers) * n * n * 4 + sum(layers) * n * (config.k or n) * 36
    elif form == "dense" and config.operator == "arma":
        orders = config.numerator + 1
        operator, building = 2 * matrix, 0
        attention = _arma(n, orders, config, max(layers))
        attention += sum(layers) * n * (config.k or n) * (36 if config.k is None else 36 + 4 * orders)
    elif form == "dense":
        operator, building, scores = _dense(n, orders, config, max(layers))
        operator += 2 * matrix
        attention = scores + sum(layers) * n * (config.k or n) * (36 if config.k is None else 36 + 4 * orders)
    else:
        operator, building = _table(graph, config, form, torch.device(device), sample)
        operator += 3 * matrix
    item = 8 if config.exact_sums else 4
    features = sum((4 * heads + 2) * item * n * config.hidden for heads in layers)
    parts = {"operator": operator, "building": building, "attention": attention, "features": features}
    return Plan(form, operator + max(building, attention + features), parts)


def check_plan(graph: Graph, config: ASGATConfig, device: torch.device | str = "cpu") -> Plan:
    """The plan, unless it takes more memory than is free: then an error that names settings that fit."""
    free = available_memory(device)
    largest = plan(graph, config, device, sample=False)
    if free is None or largest.bytes <= free:
        return largest
    likely = plan(graph, config, device)
    if likely.bytes <= free:
        return likely
    fitting = []
    for changes in _alternatives(config, likely.form):
        needed = plan(graph, config.replace(**changes), device).bytes
        if needed <= free:
            fitting.append(f"{_words(changes)} ({_size(needed)})")
        if len(fitting) == 3:
            break
    advice = f"these fit: {'; '.join(fitting)}." if fitting else "no other settings fit; take a larger machine."
    raise AsgatError(
        f"The {likely.form} form needs about {_size(likely.bytes)}, more than the {_size(free)} that are free; {advice}"
    )


def available_memory(device: torch.device | str = "cpu") -> int | None:
    """Bytes that can still be allocated on a device, or None where that cannot be known."""
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limits = [limit for limit in (_machine_memory(), _group_memory()) if limit is not None]
    return min(limits, default=None)


# -- sizes ------------------------------------------------------------------------------------------------------------


def _dense(n: int, orders: int, config: ASGATConfig, heads: int) -> tuple[int, int, int]:
    """Bytes kept by a dense Chebyshev operator, taken to build it, and taken by the scores of one layer."""
    all_orders = 4 * orders * n * n
    kept = all_orders + n * n if all_orders <= _CACHE else 0
    per_row = n * ((orders + 3) * 4 + heads * 32)
    block = min(n * per_row, max(_BLOCK, per_row))
    if config.k is None:  # scores of all pairs at once, and the matrices they are made of
        return kept, block if kept else 0, (0 if kept else all_orders) + 2 * heads * n * n * 4
    return kept, block if kept else 0, block


def _arma(n: int, orders: int, config: ASGATConfig, heads: int) -> int:
    """Bytes of conjugate gradients and of the scores of one layer."""
    per_row = n * heads * ((orders + 11) * 4 + 3 * 8)
    matrices = heads * n * n * 4
    working = n * per_row if config.k is None else min(n * per_row, max(_BLOCK, per_row))
    return working + (matrices if matrices <= _BLOCK else 0)


def _table(graph: Graph, config: ASGATConfig, form: str, device: torch.device, sample: bool) -> tuple[int, int]:
    """Bytes of a candidate table, and of building it."""
    n, orders = graph.num_nodes, config.order + 1
    item = getattr(torch, config.storage).itemsize
    candidates = max(config.candidates, config.k or 1)
    if form == "truncated table":
        return round(n * min(n, candidates) * (4 + orders * item)) + 9 * n, 64 * n + (64 << 20)
    per_node = candidates_per_node(graph, config.order, candidates, config.cap, sample)
    entries = round(n * per_node * (4 + orders * item))
    per_row = n * (9 + 20 * orders)
    if device.type == "cpu":
        working = min(torch.get_num_threads(), -(-n // WIDTH)) * n * (orders * 8 + 1) * WIDTH
    else:
        working = min(_DEVICE_BLOCK, n * n * orders * 8)
    return entries + per_row, entries + working  # the parts are joined at the end, which copies them


def candidates_per_node(graph: Graph, order: int, candidates: int, cap: int, sample: bool = True) -> float:
    """Candidates of a row of an exact table on average, from a few random rows, or else the most there can be."""
    n = graph.num_nodes
    if n == 0:
        return 0.0
    if sample and (graph.num_entries + n) * order * _SAMPLE <= _SAMPLE_WORK:
        rows = np.random.default_rng(0).permutation(n)[:_SAMPLE]
        shifted = graph.laplacian - sp.eye_array(n, format="csr")
        return build_exact(shifted, order, candidates, cap, rows).candidates_per_node
    neighbours = float(np.minimum(np.diff(graph.adjacency.indptr), cap).mean())
    return min(float(n), 1 + neighbours + order * candidates)


# -- memory -----------------------------------------------------------------------------------------------------------


def _machine_memory() -> int | None:
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if name in os.sysconf_names:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    return None


def _group_memory() -> int | None:
    """What the limit of this process's control group leaves; its file cache gives way where memory is needed."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return None
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        figures = dict(line.split() for line in (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, int(limit) - used + int(figures.get("file", 0)))
    except (OSError, ValueError):
        return None


# -- words ------------------------------------------------------------------------------------------------------------


def _alternatives(config: ASGATConfig, form: str) -> Iterator[dict[str, Any]]:
    """Changes of the settings, the gentlest first."""
    start: dict[str, Any] = {}
    if form in ("exact", "dense"):
        start["form"] = "table"
        if form == "exact":
            start["operator"] = "chebyshev"
        if config.k is None:
            start["k"] = 10
        if config.include_unreachable:
            start["include_unreachable"] = False
        yield start
    fewer = max(start.get("k") or config.k or 1, config.candidates // 2)
    steps: list[dict[str, Any]] = []
    if config.storage != "float16":
        steps.append({"storage": "float16"})
    if fewer < config.candidates:
        steps.append({"candidates": fewer})
    if config.order > 8:
        steps.append({"order": 8, "sampling_points": None} if config.sampling_points else {"order": 8})
    combined = start
    for step in steps:
        yield {**start, **step}
        if combined != start:
            yield {**combined, **step}
        combined = {**combined, **step}
    if form != "truncated table" and config.tolerance is None:
        yield {**start, "builder": "truncated"}
        yield {**combined, "builder": "truncated"}


def _words(changes: dict[str, Any]) -> str:
    """``form=table with candidates=16, order=8``."""
    texts = [f"{key}={'none' if value is None else str(value).lower()}" for key, value in changes.items()]
    return texts[0] + (f" with {', '.join(texts[1:])}" if len(texts) > 1 else "")


def _size(count: int) -> str:
    gib = count / 2**30
    return f"{gib:.1f} GiB" if gib < 10 else f"{gib:,.0f} GiB"
