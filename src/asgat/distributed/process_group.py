"""The ranks of a job: how one joins the others, and how it learns that one of them is lost."""

import contextlib
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor

from asgat.distributed.lost_rank import LostRankExit
from asgat.errors import AsgatError

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_BEAT, _SILENCE = 2.0, 20.0  # seconds between signs of life, and without one before a rank counts as lost
_LOST_WORDS = re.compile(r"gloo|nccl|tcpstore|connection|socket|timed out|timeout|broken pipe|peer", re.IGNORECASE)


class ReportedByRankZeroError(AsgatError):
    """An error of rank 0, which reports it for all."""


class Group:
    """The ranks of one job; every method is called by all of them, in the same order."""

    def __init__(self, rank: int, size: int, device: torch.device, lost_rank: LostRankExit | None = None) -> None:
        self.rank, self.size = rank, size
        self.device = device  # where this rank computes: the CPU, with gloo between ranks, or its own GPU, with NCCL
        self.lost_rank = lost_rank or LostRankExit(rank)  # what it says if another is lost

    @classmethod
    def join(cls, device: torch.device | str = "cpu", lost_rank: LostRankExit | None = None) -> Self:
        """Joins the job that the launcher's variables describe; refused where no launcher has set them."""
        missing = [name for name in VARIABLES if not os.environ.get(name)]
        if missing:
            raise AsgatError(
                f"--distributed needs a launcher that sets {', '.join(VARIABLES)} ({', '.join(missing)} missing); "
                "start it as `torchrun --nproc-per-node 2 -m asgat train … --distributed`."
            )
        try:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            local = int(os.environ.get("LOCAL_RANK", "0"))
        except ValueError:
            raise AsgatError("RANK, WORLD_SIZE and LOCAL_RANK must be whole numbers; a launcher sets them.") from None
        device = torch.device(device)
        if device.type == "cuda":
            if local >= torch.cuda.device_count():
                count = torch.cuda.device_count()
                raise AsgatError(f"Rank {rank} asks for GPU {local}, but there are {count} here; use --device cpu.")
            device = torch.device("cuda", local)
            torch.cuda.set_device(device)
        try:
            # Long: a rank that has ended closes its connections, and one that hangs is found by the watch.
            dist.init_process_group(
                "nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=size, timeout=timedelta(hours=2)
            )
        except (RuntimeError, ValueError) as error:
            raise AsgatError(f"Rank {rank} could not join the others: {_first_line(error)}") from error
        return cls(rank, size, device, lost_rank)

    @property
    def on_machine(self) -> int:
        """Number of ranks on this machine, as the launcher says; all of them where it does not."""
        local = os.environ.get("LOCAL_WORLD_SIZE", "")
        return int(local) if local.isdecimal() else self.size

    @property
    def first(self) -> bool:
        """Whether this rank is the one that writes."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks, in place; the same bits on each of them."""
        dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Every gradient summed over the ranks, in one message; None where a parameter has none."""
        given = [gradient for gradient in gradients if gradient is not None]
        flat = self.sum(torch.cat([gradient.reshape(-1) for gradient in given]))
        parts = iter(torch.split(flat, [gradient.numel() for gradient in given]))
        return [None if gradient is None else next(parts).view_as(gradient) for gradient in gradients]

    def gather(self, value: Any) -> list[Any]:
        """What every rank holds, by rank; for small things."""
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def from_first(self, make: Callable[[], Any]) -> Any:
        """What rank 0 makes, on all ranks; an error it raises ends them all."""
        sent: list[Any] = [None]
        if self.first:
            try:
                sent = [make()]
            except AsgatError as error:
                dist.broadcast_object_list([ReportedByRankZeroError(str(error))], device=self.device)
                raise
        dist.broadcast_object_list(sent, device=self.device)
        if isinstance(sent[0], ReportedByRankZeroError):
            raise sent[0]
        return sent[0]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While inside, the loss of another rank ends this process with a sentence and exit code 3.

        A closed connection is reported by the collective that meets it; signs of life through the launcher's store find
        a rank that hangs, or is lost while the others compute.
        """
        store: Any = dist.distributed_c10d._get_default_store()
        store, ended = store.clone(), threading.Event()  # the other connection may wait for a collective
        keys = [f"asgat-alive/{rank}" for rank in range(self.size)]
        store.set(keys[self.rank], "0")
        thread = threading.Thread(target=self._watch, args=(store, keys, ended), daemon=True)
        if self.size > 1:
            thread.start()
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and not _LOST_WORDS.search(str(error)):
                raise
            self.lost_rank.leave(_first_line(error))
        finally:
            ended.set()
            if thread.is_alive():
                thread.join(_BEAT + 1.0)
            with contextlib.suppress(RuntimeError):
                store.set(keys[self.rank], "left")

    def _watch(self, store: Any, keys: list[str], ended: threading.Event) -> None:
        """Gives signs of life, and looks for those of the others, until ``ended``."""
        seen: list[tuple[bytes, float]] = [(b"", time.monotonic())] * self.size
        try:
            store.wait(keys, timedelta(seconds=60))
            for beat in itertools.count(1):
                if ended.wait(_BEAT):
                    return
                store.set(keys[self.rank], str(beat))
                now = time.monotonic()
                for rank, value in enumerate(store.multi_get(keys)):
                    if value != seen[rank][0] or value == b"left":
                        seen[rank] = value, now
                    elif now - seen[rank][1] > _SILENCE and not ended.is_set():
                        self.lost_rank.leave(f"rank {rank} has been silent for {_SILENCE:.0f} s")
        except RuntimeError as error:  # the store was lost, and with it the rank or the launcher that held it
            if not ended.is_set():
                self.lost_rank.leave(_first_line(error))

    def close(self) -> None:
        dist.destroy_process_group()


def _first_line(error: BaseException) -> str:
    """The gist of a message that names files, addresses and advice."""
    known = re.search(r"connection (closed|reset) by peer|broken pipe|timed out", str(error), re.IGNORECASE)
    if known:
        return known[0].lower()
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r"\[[^\]]*\]\s*", "", line).split(". ")[0].rstrip(".")[:160]
