from dataclasses import replace

import pytest
import torch
from tests.training.small import make_task, settings, small_dataset

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.training import lanes
from asgat.training.lanes import Layout, forward_work
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job


def jobs(config, count):
    splits = small_dataset().splits
    return [Job(splits[i % len(splits)], i, config, i) for i in range(count)]


def figures(task, own, at_once=None):
    outcomes = dict(train_jobs(task, own, at_once))
    return {i: {**vars(outcome), "seconds": 0, "state": 0} for i, outcome in outcomes.items()}, outcomes


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr("asgat.threads.available_cores", lambda: 2)  # of which a machine may have one
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("stacked", [1, 2])
def test_lanes_change_no_bit_of_a_run(monkeypatch, stacked):
    config = settings("asgat-plus", form="table", epochs=12, patience=3, dropout=0.3, members=2, max_restarts=1)
    task, own = make_task("asgat-plus", config, torch.float32), jobs(config, 3)
    alone, expected = figures(task, own, at_once=1)
    made = []
    original = lanes.ProgramGroup.__init__

    def counted(self, *arguments, **options):
        original(self, *arguments, **options)
        made.append([len(program.runs) for program in self.programs])

    monkeypatch.setattr(lanes.ProgramGroup, "__init__", counted)
    monkeypatch.setattr(lanes, "SEVERAL_LANES", 1)
    monkeypatch.setattr(lanes, "MOST_STACKED", stacked)
    found, outcomes = figures(task, own)
    assert made[0] == [stacked, stacked]
    assert found == alone
    for i, outcome in outcomes.items():
        assert all(torch.equal(value, expected[i].state[name]) for name, value in outcome.state.items())


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_is_put_back_even_after_an_error(monkeypatch):
    monkeypatch.setattr(lanes, "SEVERAL_LANES", 1)
    config = settings("asgat-plus", form="table", epochs=5)
    task = make_task("asgat-plus", config, torch.float32)
    for _ in train_jobs(task, jobs(config, 2)):
        assert torch.get_num_threads() == 2

    def fail(*_):
        assert torch.get_num_threads() == 1
        raise AsgatError("enough.")

    with pytest.raises(AsgatError, match="enough"):
        list(train_jobs(task, jobs(config, 2), progress=fail))
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_the_layout_depends_on_the_problem(monkeypatch):
    config = settings("asgat-plus", form="table")
    assert isinstance(config, ASGATConfig)
    assert config.k is not None
    task = make_task("asgat-plus", config, torch.float32)
    pairs, work = config.heads * len(task.y) * config.k, forward_work(task, config)
    assert Layout.of(task, config, True) == Layout(1, lanes.MOST_STACKED, 1)
    assert Layout.of(task, config.replace(k=10**6), True) == Layout(1, lanes.MOST_STACKED, 1), "k is at most all nodes"
    monkeypatch.setattr(lanes, "SEVERAL_LANES", pairs)
    monkeypatch.setattr(lanes, "IN_CACHE", 3 * pairs + 1)
    assert Layout.of(task, config, True) == Layout(2, 3, 1)
    assert Layout.of(task, config) == Layout(1, None, 1), "runs that cannot be stacked"
    monkeypatch.setattr(lanes, "ONE_THREAD", work - 1)
    assert Layout.of(task, config, True) == Layout(1, 1, 1), "no thread would have enough to do"
    monkeypatch.setattr(lanes, "PER_THREAD", work // 2)
    assert Layout.of(task, config, True) == Layout(1, 1, 2)
    monkeypatch.setattr(lanes, "PER_THREAD", 1)
    assert Layout.of(task, config) == Layout(1, None, 2), "there are no more"
    assert [Layout(2, 3).room(at_once) for at_once in (None, 4, 9)] == [6, 4, 6]
    assert (Layout().room(None), Layout().room(5)) == (None, 5)


@pytest.mark.usefixtures("two_threads")
def test_a_given_number_of_threads_is_used_whatever_the_work(monkeypatch):
    monkeypatch.setattr("asgat.threads._given", 3)
    config = settings("asgat-plus", form="table")
    task = make_task("asgat-plus", config, torch.float32)
    assert Layout.of(task, config) == Layout(threads=3)
    assert Layout.of(task, config, True) == Layout(1, lanes.MOST_STACKED, 3)
    monkeypatch.setattr(lanes, "SEVERAL_LANES", 1)
    assert (Layout.of(task, config, True).lanes, Layout.of(task, config, True).threads) == (3, 1)
    monkeypatch.setattr(lanes, "ONE_THREAD", 0)
    assert Layout.of(task, config, True) == Layout(1, 1, 3)


def test_the_sentence_names_threads_and_why(monkeypatch):
    assert Layout().sentence() == "Threads on the CPU: as PyTorch is set."
    assert Layout(threads=1).sentence() == "Threads on the CPU: 1 thread, by the work of an epoch."
    monkeypatch.setattr("asgat.threads._given", 2)
    assert Layout(threads=2).sentence() == "Threads on the CPU: 2 threads, as given."
    lanes_of_two = "1 thread for each of up to 2 programs at the same time"
    assert Layout(2, 3, 1).sentence() == f"Threads on the CPU: {lanes_of_two}, as given."


def test_every_training_says_its_threads(caplog):
    caplog.set_level("INFO", "asgat")
    config = settings("gcn", epochs=2)
    list(train_jobs(make_task("gcn", config), jobs(config, 1)))
    assert [record.getMessage() for record in caplog.records] == [Layout(threads=1).sentence()]


def test_the_work_is_the_stated_cost():
    sizes = len(small_dataset().y), int((small_dataset().x != 0).sum())
    config = settings("gcn", hidden=7, layers=3)
    task = make_task("gcn", config)
    entries = task.inputs[1].value.numel()
    assert forward_work(task, config) == 7 * sizes[1] + 3 * 7 * entries
    cheb = settings("chebnet", hidden=7, order=4)
    task = make_task("chebnet", cheb)
    assert forward_work(task, cheb) == 7 * sizes[1] + 2 * 4 * 7 * task.inputs[1].value.numel()
    shared = {"heads": 2, "hidden": 5, "k": 4}
    table = settings("asgat-cheb", form="table", order=6, **shared)
    task = make_task("asgat-cheb", table)
    pairs = task.inputs[1].table.index.numel()
    assert forward_work(task, table) == 10 * sizes[1] + 2 * 2 * (6 * pairs + sizes[0] * 4 * 5)
    exact = settings("asgat-exact", **shared)
    scores = 40 * 40 * 3  # 40 columns of dense matrices, for which 16 multiply-adds count as one
    assert forward_work(make_task("asgat-exact", exact), exact) == 10 * sizes[1] + 4 * (scores + 40 * 4 * 5)
    dense = replace(make_task("mlp", config), inputs=(torch.rand(40, 32),))
    assert forward_work(dense, config) == 7 * 40 * 32 // 16
    deep = settings("asgat-deep", heads=2, hidden=4, channels="filters", order=6)
    graph = make_task("asgat-deep", deep).inputs[1].graph
    found = forward_work(make_task("asgat-deep", deep), deep)
    assert found == 8 * sizes[1] + 2 * 6 * graph.num_entries * 4
