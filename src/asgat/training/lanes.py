"""Runs on several CPU threads: which problem gets how many, and programs that run at the same time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import torch

from asgat.config import SpectralConfig, TrainConfig
from asgat.training.program import EagerEpochs, Figures, Program, Task
from asgat.training.run_state import Run, State

# Attended pairs of nodes in one layer, heads · N · k:
ONE_THREAD = 1_000_000  # up to here a run is computed by one thread, whatever the machine: its numbers are the same
SEVERAL_LANES = 50_000  # from here on several runs at the same time pay; below, most of an epoch is Python's overhead
IN_CACHE = 250_000  # of all stacked runs, so that what they read stays in a processor's cache
MOST_STACKED = 32


@dataclass(frozen=True)
class Layout:
    """How runs are laid out on the CPU."""

    lanes: int = 1  # programs that run at the same time, each on its own thread
    stacked: int | None = None  # runs of one program at most; None for any number
    one_thread: bool = False  # whether PyTorch's operators use one thread

    @classmethod
    def of(cls, task: Task, config: TrainConfig) -> Self:
        """The layout for runs that can be stacked. Numbers do not depend on lanes or stacks, only the time does."""
        if task.y.device.type != "cpu" or not isinstance(config, SpectralConfig):
            return cls()
        nodes = task.inputs[1].num_nodes  # of a directed graph twice as many
        pairs = max(1, config.heads * nodes * min(config.k or nodes, nodes))
        if pairs > ONE_THREAD:
            return cls(stacked=1)
        stacked = max(1, min(MOST_STACKED, IN_CACHE // pairs))
        return cls(torch.get_num_threads() if pairs >= SEVERAL_LANES else 1, stacked, True)

    def room(self, at_once: int | None) -> int | None:
        """How many runs are trained at a time, if ``at_once`` fit the memory."""
        total = None if self.stacked is None else self.lanes * self.stacked
        return total if at_once is None else at_once if total is None else min(total, at_once)

    @contextmanager
    def threads(self) -> Iterator[None]:
        """While inside, PyTorch's operators use as many threads as the layout says."""
        before = torch.get_num_threads()
        if self.one_thread:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


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
