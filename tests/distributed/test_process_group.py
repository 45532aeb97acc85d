import pytest
import torch
import torch.distributed as dist
from tests.distributed.ranks import free_port

from asgat.distributed.process_group import VARIABLES, Group, _first_line
from asgat.errors import AsgatError


@pytest.fixture
def variables(monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))


def test_without_a_launcher_the_error_names_the_command(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AsgatError, match="torchrun --nproc-per-node 2 -m asgat train"):
        Group.join()
    monkeypatch.setenv("RANK", "zero")
    for name in VARIABLES[1:]:
        monkeypatch.setenv(name, "1")
    with pytest.raises(AsgatError, match="whole numbers"):
        Group.join()


@pytest.fixture
def group(variables):
    joined = Group.join()
    yield joined
    joined.close()


def test_gradients_are_summed_in_one_message_and_missing_ones_stay_missing(group, monkeypatch):
    messages = []

    def doubled(tensor):  # as by two ranks with the same gradients
        messages.append(tensor.numel())
        return tensor.mul_(2)

    monkeypatch.setattr(dist, "all_reduce", doubled)
    first, second, third = group.sum_gradients([torch.ones(2, 3), None, torch.arange(4.0)])
    assert torch.equal(first, torch.full((2, 3), 2.0))
    assert second is None
    assert torch.equal(third, 2 * torch.arange(4.0))
    assert messages == [10]


def test_an_error_of_rank_zero_is_raised_as_it_is(group):
    def fail():
        raise AsgatError("no such thing")

    with pytest.raises(AsgatError, match="no such thing"):
        group.from_first(fail)


class LeftError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (RuntimeError("[/pytorch/gloo/pair.cc:1] Connection closed by peer [127.0.0.1]:1"), True),
        (dist.DistNetworkError("The client socket has failed"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (AsgatError("bad input"), False),
    ],
)
def test_a_broken_connection_is_a_lost_rank_and_other_errors_are_not(group, monkeypatch, error, left):
    def leave(why=""):
        raise LeftError(why)

    monkeypatch.setattr(group.lost_rank, "leave", leave)
    with pytest.raises(LeftError if left else type(error)), group.watched():
        raise error


def test_the_gist_of_an_error():
    error = RuntimeError("[..pair.cc:1] Connection closed by peer [127.0.0.1]:1. Some advice.\nmore")
    assert _first_line(error) == "connection closed by peer"
    assert _first_line(RuntimeError("[enforce fail] The store has closed. Some advice.")) == "The store has closed"
    assert _first_line(RuntimeError()) == "RuntimeError"


def test_ranks_of_a_machine_are_those_the_launcher_names(monkeypatch):
    group = Group(3, 8, torch.device("cpu"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert group.on_machine == 4
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    assert group.on_machine == 8
