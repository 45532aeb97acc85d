"""Time of one epoch, training and evaluation, compared with PyG's GAT of the same width, or on a busy machine."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import ASGATConfig, TrainConfig
from asgat.data import Dataset
from asgat.errors import AsgatError, suggest
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.pyg import GATConv
from asgat.nn.registry import make_config, model_spec
from asgat.training.inputs import make_inputs, normalise_rows
from asgat.training.lanes import Layout
from asgat.training.program import CapturedEpochs, EagerEpochs, Program, Task
from asgat.training.run_state import Job, Run
from asgat.tuning.space import CHEBYSHEV

DENSE_LIMIT = 6000  # the dense form is timed up to this many nodes
TABLE: dict[str, Any] = {"form": "table", "candidates": 32, "cap": 256}
# Says that it has begun, and ends with the process that started it.
_BUSY = "import os\nparent = os.getppid()\nprint(flush=True)\nwhile os.getppid() == parent:\n    sum(range(10**5))"


def published_config(dataset: str, **changes: Any) -> ASGATConfig:
    """The published settings of asgat-cheb for a data set, with the table all benchmarks share."""
    if dataset not in CHEBYSHEV:
        raise AsgatError(f"No published settings for {dataset!r}. {suggest(dataset, list(CHEBYSHEV))}")
    config = make_config("asgat-cheb", **{**CHEBYSHEV[dataset], **TABLE, **changes})
    assert isinstance(config, ASGATConfig)
    return config


class GAT(nn.Module):
    """Two layers of PyG's ``GATConv``; with ``sparse`` the first product skips zeros, and all nodes need self-loops."""

    def __init__(self, in_channels: int, config: ASGATConfig, out_channels: int, sparse: bool = False) -> None:
        super().__init__()
        width = config.heads * config.hidden
        loops = not sparse  # the tuned form gets them with its edges: adding them waits for the device
        shared = {"dropout": config.dropout, "add_self_loops": loops}
        self.first = GATConv(in_channels, config.hidden, heads=config.heads, **shared)
        self.last = GATConv(width, out_channels, heads=1, concat=False, **shared)
        self.dropout = config.dropout
        if sparse:
            self.product = self.first.lin
            self.first.lin = nn.Identity()

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        if isinstance(x, SparseFeatures):
            hidden = x.dropout(self.dropout, self.training).linear(self.product.weight)
        else:
            hidden = F.dropout(x, self.dropout, self.training)
        hidden = F.elu(self.first(hidden, edge_index))
        out: Tensor = self.last(F.dropout(hidden, self.dropout, self.training), edge_index)
        return out


class PlainProgram(Program):
    """A program with an optimiser of ``torch.optim`` in its usual form; ours is fused into one pass."""

    def step(self, seeds: Tensor | None) -> list[Tensor]:
        if not hasattr(self, "plain"):
            config = self.runs[0].job.config
            optimiser = torch.optim.AdamW if config.decoupled_decay else torch.optim.Adam
            self.plain = optimiser(self.parameters, config.lr, weight_decay=config.weight_decay)
        self.set_training(True)
        self.plain.zero_grad()
        loss = self.objectives[0].loss(self.forward()[0])
        loss.backward()  # type: ignore[no-untyped-call]
        self.plain.step()
        return [loss.detach().double()]


def bench_epoch(
    data: Dataset, config: ASGATConfig, device: torch.device, progress: Callable[[str], None], repeats: int = 7
) -> dict[str, Any]:
    """Milliseconds of one epoch on a data set, medians over interleaved repeats, and their ratios."""
    name = data.name
    progress(f"{name}: building the table")
    started = time.perf_counter()
    inputs = make_inputs(data, "asgat-cheb", config, device)
    build_s = time.perf_counter() - started
    edges = torch.from_numpy(data.graph.with_self_loops(config.self_loops).edge_index()).to(device)
    dense_x = torch.from_numpy(normalise_rows(data.x)).to(device)
    looped = torch.from_numpy(data.graph.with_self_loops("add").edge_index()).to(device)
    sparse_x = SparseFeatures.from_dense(dense_x, device)
    asgat = partial(model_spec("asgat-cheb").build, config, data.num_features, data.num_classes)
    gat = partial(GAT, data.num_features, config, data.num_classes)
    common = data, config, device
    contenders: dict[str, Callable[[], float]] = {
        "asgat_ms": timer(asgat, inputs, *common, True),
        "gat_ms": timer(gat, (dense_x, edges), *common, False, PlainProgram),
        "gat_tuned_ms": timer(partial(gat, sparse=True), (sparse_x, looped), *common, True),
    }
    if data.num_nodes <= DENSE_LIMIT:
        all_pairs = make_inputs(data, "asgat-cheb", config.replace(form="dense"), device)
        contenders["dense_ms"] = timer(asgat, all_pairs, *common, False)
    median = medians(contenders, repeats, lambda text: progress(f"{name}: {text}"))
    return {
        "dataset": name,
        "nodes": data.num_nodes,
        **{key: median.get(key) for key in ("asgat_ms", "gat_ms", "gat_tuned_ms", "dense_ms")},
        "speedup_vs_gat": median["gat_ms"] / median["asgat_ms"],
        "speedup_vs_tuned_gat": median["gat_tuned_ms"] / median["asgat_ms"],
        "build_s": build_s,
        **{key: getattr(config, key) for key in ("candidates", "cap", "order")},
        "dtype": config.storage,
        "candidates_per_node": inputs[1].table.candidates_per_node,
    }


def medians(
    contenders: dict[str, Callable[[], float]], repeats: int, progress: Callable[[str], None]
) -> dict[str, float]:
    """The median time of every contender; they take turns."""
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for repeat in range(repeats):
        progress(f"repeat {repeat + 1} of {repeats}")
        for key, run in contenders.items():
            if key != "dense_ms" or repeat < 3:  # the slowest, shown for orientation only
                times[key].append(run())
    return {key: statistics.median(values) for key, values in times.items()}


def timer(
    build: Callable[[], nn.Module],
    inputs: tuple[Any, ...],
    data: Dataset,
    config: TrainConfig,
    device: torch.device,
    captured: bool,
    kind: type[Program] = Program,
) -> Callable[[], float]:
    """A function that runs a few epochs and returns the milliseconds of one, on as many threads as in a training."""
    task = Task(lambda _: build(), inputs, torch.from_numpy(data.y).to(device), data.metric)
    program = kind(task, [Run(Job(data.splits[0], 0, config), 0.0)], [None])
    layout, on_cuda = Layout.of(task, config), device.type == "cuda"
    epochs = CapturedEpochs(program) if captured and on_cuda else EagerEpochs(program)
    with layout.limit():
        for _ in range(2 if on_cuda else 1):
            epochs.run(16)  # compiles and warms up

    def run() -> float:
        with layout.limit():
            started, count = time.perf_counter(), 0
            while count < (64 if on_cuda else 1) or (time.perf_counter() - started < 0.2):
                count += len(epochs.run(16))
            if on_cuda:
                torch.cuda.synchronize(device)
            return 1000 * (time.perf_counter() - started) / count

    return run


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keeps that many other processes computing, one thread each, while the body runs."""
    with ExitStack() as started:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE)
            started.enter_context(process)
            started.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


def bench_busy(
    data: Dataset,
    config: ASGATConfig,
    device: torch.device,
    progress: Callable[[str], None],
    repeats: int = 7,
    busy: int = 1,
) -> dict[str, Any]:
    """Milliseconds of one epoch of ASGAT without and with busy processes, in turns: medians and their ratio."""
    progress(f"{data.name}: building the table")
    inputs = make_inputs(data, "asgat-cheb", config, device)
    asgat = partial(model_spec("asgat-cheb").build, config, data.num_features, data.num_classes)
    run = timer(asgat, inputs, data, config, device, True)

    def crowded() -> float:
        with busy_processes(busy):
            return run()

    times = medians({"quiet_ms": run, "busy_ms": crowded}, repeats, lambda text: progress(f"{data.name}: {text}"))
    return {"dataset": data.name, "nodes": data.num_nodes, **times, "ratio": times["busy_ms"] / times["quiet_ms"]}
