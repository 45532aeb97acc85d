"""Ranks as processes on this machine, for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from tests.forkserver import CONTEXT

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset
from asgat.distributed.process_group import Group
from asgat.distributed.shard import InMemory
from asgat.distributed.trainer import run_distributed

Losses = list[tuple[float, float]]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def start(ranks: int, command: list[str], **options: Any) -> list[subprocess.Popen[str]]:
    """The command once per rank, with the variables a launcher would set."""
    port = str(free_port())
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    shared |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return [
        subprocess.Popen(
            [sys.executable, *command], env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}, **pipes
        )
        for rank in range(ranks)
    ]


def finish(processes: list[subprocess.Popen[str]], timeout: float = 200) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of every rank; none is left running."""
    ended = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=timeout)
            ended.append((process.returncode, out, err))
    finally:
        for process in processes:
            process.kill()
    return ended


def train(ranks: int, out: Path, *arguments: str) -> list[tuple[int, str, str]]:
    return finish(start(ranks, ["-m", "asgat", "train", *arguments, "--distributed", "--out", str(out)]))


def losses(out: Path) -> Losses:
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [(row["train_loss"], row["val_loss"]) for row in map(json.loads, lines)]


def pool(ranks: int) -> ProcessPoolExecutor:
    """Processes for :func:`train_in_pool`, started once for many small trainings."""
    return ProcessPoolExecutor(ranks, CONTEXT)


def train_in_pool(
    workers: ProcessPoolExecutor,
    ranks: int,
    data: Dataset,
    model: str,
    config: TrainConfig,
    dtype: torch.dtype = torch.float32,
) -> dict[str, Any]:
    """The result of run 0, with the history of its epochs, by ranks in the processes of a pool that has as many."""
    port = free_port()
    jobs = [workers.submit(_rank, rank, ranks, port, data, model, config, dtype) for rank in range(ranks)]
    first, *_ = [job.result() for job in jobs]  # a test has its own time limit
    return first


def _rank(
    rank: int, ranks: int, port: int, data: Dataset, model: str, config: TrainConfig, dtype: torch.dtype
) -> dict[str, Any]:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    group = Group.join()
    try:
        return run_distributed(InMemory(data, config), model, config, group, [0], dtype=dtype)
    finally:
        group.close()
