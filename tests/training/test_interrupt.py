"""Ctrl-C once, twice, and where someone else handles it."""

import os
import signal
import threading

import pytest

from asgat.training.interrupt import NOTICE, Interrupt


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_asks_and_the_second_stops(capfd):
    with Interrupt() as interrupt:
        before = interrupt.asked
        press()
        assert (before, interrupt.asked) == (False, True)
        assert capfd.readouterr().err == NOTICE
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        press()


def test_another_handler_stays():
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with Interrupt() as interrupt:
            press()
            assert (interrupt.asked, heard) == (False, [signal.SIGINT])
        press()
        assert len(heard) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_nothing_changes():
    found = []

    def enter():
        with Interrupt():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
