"""Runs on several CPU threads: which problem gets how many, and programs that run at the same time."""

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from asgat.config import SpectralConfig, TrainConfig
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral import SpectralOperator
from asgat.threads import available_threads, given_threads, thread_limit
from asgat.training.program import EagerEpochs, Figures, Program, Task
from asgat.training.run_state import Run, State

# Multiply-adds of a forward pass. An epoch takes about a nanosecond for each on one core, and 2 to 5 ms at least.
DENSE = 16  # multiply-adds of a product of dense matrices that take as long as one of a sparse product
ONE_THREAD = 120_000_000  # up to here a run is computed by one thread, whatever the machine
PER_THREAD = 40_000_000  # beyond, every thread gets at least so much, or starting and waiting cost more than it saves
# Attended pairs of nodes in one layer, heads · N · k:
SEVERAL_LANES = 50_000  # from here on several runs at the same time pay; below, most of an epoch is Python's overhead
IN_CACHE = 250_000  # of all stacked runs, so that what they read stays in a processor's cache
MOST_STACKED = 32


@dataclass(frozen=True)
class Layout:
    """How runs are laid out on the CPU."""

    lanes: int = 1  # programs that run at the same time, each on its own thread
    stacked: int | None = None  # runs of one program at most; None for any number
    threads: int | None = None  # of PyTorch's operators, the kernels and BLAS; None for what they are set to

    @classmethod
    def of(cls, task: Task, config: TrainConfig, stacks: bool = False) -> Self:
        """The layout for runs of a task: by their work, not by the machine, unless a number of threads was given.

        Runs that can be stacked may run at the same time. Numbers do not depend on lanes or stacks, only the time does.
        """
        if task.y.device.type != "cpu":
            return cls()
        work, given = forward_work(task, config), given_threads()
        threads = given or min(available_threads(), max(1, work // PER_THREAD) if work > ONE_THREAD else 1)
        if not stacks or not isinstance(config, SpectralConfig):
            return cls(threads=threads)
        if work > ONE_THREAD:
            return cls(stacked=1, threads=threads)
        nodes = task.inputs[1].num_nodes  # of a directed graph twice as many
        pairs = max(1, config.heads * nodes * min(config.k or nodes, nodes))
        lanes = available_threads() if pairs >= SEVERAL_LANES else 1
        return cls(lanes, max(1, min(MOST_STACKED, IN_CACHE // pairs)), 1 if lanes > 1 else threads)

    def room(self, at_once: int | None) -> int | None:
        """How many runs are trained at a time, if ``at_once`` fit the memory."""
        total = None if self.stacked is None else self.lanes * self.stacked
        return total if at_once is None else at_once if total is None else min(total, at_once)

    def limit(self) -> AbstractContextManager[None]:
        """A context in which everything uses as many threads as the layout says."""
        return nullcontext() if self.threads is None else thread_limit(self.threads)

    def sentence(self) -> str:
        """What ``--verbose`` says of it."""
        if self.threads is None:
            return "Threads on the CPU: as PyTorch is set."
        each = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        if self.lanes > 1:
            each += f" for each of up to {self.lanes} programs at the same time"
        return f"Threads on the CPU: {each}, {'as given' if given_threads() else 'by the work of an epoch'}."


def forward_work(task: Task, config: TrainConfig) -> int:
    """Multiply-adds of a forward pass, roughly: the cost of the model that ``asgat models`` states."""
    features, *prepared = task.inputs
    width = getattr(config, "heads", 1) * config.hidden
    steps = getattr(config, "steps", getattr(config, "order", 1))
    layer = 0
    for part in prepared:
        if isinstance(part, SpectralOperator) and isinstance(config, SpectralConfig):
            layer += _spectral_work(part, config)
        else:
            layer += steps * width * _stored(part)
    first = width * _stored(features) // (DENSE if isinstance(features, Tensor) else 1)
    return first + config.layers * layer


def _spectral_work(operator: SpectralOperator, config: SpectralConfig) -> int:
    nodes, (table, graph) = operator.num_nodes, (getattr(operator, name, None) for name in ("table", "graph"))
    work = 0
    if config.attends:
        pairs = nodes**2 if table is None else table.index.numel()
        degree = -(-nodes // DENSE) if config.operator == "exact" else config.order
        work += config.heads * (degree * pairs + nodes * min(config.k or nodes, nodes) * config.hidden)
    if "filters" in getattr(config, "channels", "") and graph is not None:
        work += config.order * graph.num_entries * config.hidden
    return work


def _stored(part: Any) -> int:
    """Numbers that an input holds."""
    held = part.value if isinstance(part, SparseFeatures) else part
    return held.numel() if isinstance(held, Tensor) else 0


class ProgramGroup:
    """Several programs that run at the same time, seen as one program and its epochs; runs are dealt out to them."""

    capturable = False

    def __init__(
        self, task: Task, runs: Sequence[Run], snapshots: Sequence[State | None], lanes: int, executor: Executor
    ) -> None:
        self.runs, self.executor = list(runs), executor
        dealt = [slice(lane, None, lanes) for lane in range(min(lanes, len(runs)))]
        self.programs = [Program(task, runs[own], snapshots[own]) for own in dealt]
        self.places = [(row % lanes, row // lanes) for row in range(len(runs))]
        self.kept = [self.programs[lane].kept[place] for lane, place in self.places]

    def run(self, limit: int) -> list[list[Figures]]:
        """As :meth:`EagerEpochs.run`."""
        done = list(self.executor.map(lambda program: EagerEpochs(program).run(limit)[0], self.programs))
        return [[done[lane][place] for lane, place in self.places]]

    def keep(self, positions: dict[int, int]) -> None:
        """As :meth:`EagerEpochs.keep`."""
        for lane, place in (self.places[row] for row in positions):
            self.programs[lane].keep([place])

    def snapshot(self, row: int) -> State:
        lane, place = self.places[row]
        return self.programs[lane].snapshot(place)

    def scores(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        return [self.programs[lane].scores([place])[0] for lane, place in (self.places[row] for row in rows)]
