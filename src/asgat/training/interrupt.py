"""Ctrl-C during a training: the first asks it to stop in order, the second stops it at once."""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

NOTICE = "\nInterrupted: the epoch is finished and saved first; Ctrl-C once more stops at once.\n"


class Interrupt:
    """While it is entered the first SIGINT sets ``asked``, and the second raises KeyboardInterrupt.

    Outside the main thread, and where SIGINT is ignored or has another handler, nothing changes.

    Attributes:
        asked: whether Ctrl-C was pressed; the training loop checks it after every epoch, saves and stops.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        os.write(2, NOTICE.encode())
