import subprocess
import sys

CODE = """
import ctypes, signal, sys
from asgat.distributed.lost_rank import LostRankExit
lost_rank = LostRankExit(4)
lost_rank.on_terminate()
lost_rank.status, lost_rank.remedy = "epoch 7 was computed", "relaunch"
print("ready", flush=True)
if sys.argv[1] == "blocked":  # as in a collective: the interpreter does not get to run its handlers
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ctypes.CDLL(None).sleep(600)
else:
    lost_rank.leave("connection closed")
"""
SENTENCE = "Rank 4: another rank was lost while epoch 7 was computed{}; relaunch.\n"


def run(how):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", CODE, how], **pipes)  # type: ignore[call-overload]


def test_a_launchers_signal_is_answered_even_while_the_rank_waits():
    process = run("blocked")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (3, SENTENCE.format(""))


def test_it_says_why_and_leaves():
    process = run("leave")
    _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (3, SENTENCE.format(" (connection closed)"))
