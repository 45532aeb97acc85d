"""Ranks as processes on this machine, for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


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
    """Exit code, output and errors of every rank; whatever happens, none is left running."""
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


def losses(out: Path) -> list[tuple[float, float]]:
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [(row["train_loss"], row["val_loss"]) for row in map(json.loads, lines)]
