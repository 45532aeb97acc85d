"""How a rank of a distributed job ends when another one is lost: with a sentence, at once."""

import os
import signal
import socket
import sys
import threading

from asgat.distributed.launcher import report_to_launcher

LOST = 3  # exit code of a rank that lost another


class LostRankExit:
    """What a rank reports when another is lost: what was being done (``status``), and what to do (``remedy``)."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.status = "the job started"
        self.remedy = "relaunch the same command"
        self._said = threading.Lock()

    def leave(self, why: str = "") -> None:
        """Reports it and ends this process: leaving in order would wait for the lost one."""
        if self._said.acquire(blocking=False):
            detail = f" ({why})" if why else ""
            sentence = f"Rank {self.rank}: another rank was lost while {self.status}{detail}; {self.remedy}."
            sys.stderr.write(f"{sentence}\n")
            sys.stderr.flush()
            report_to_launcher(sentence)
            os._exit(LOST)

    def on_terminate(self) -> None:
        """From now on SIGTERM, by which a launcher ends the ranks that are left, is answered so.

        A thread of its own answers: Python's handlers wait while the main thread waits for another rank.
        """
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        self._sockets = receiver, sender  # kept open

        def wait() -> None:
            while signal.SIGTERM not in receiver.recv(64):
                pass
            self.leave()

        threading.Thread(target=wait, daemon=True).start()
