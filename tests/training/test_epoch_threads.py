from dataclasses import replace

import pytest
import torch
from tests.training.small import make_task, settings, small_dataset

from asgat.errors import AsgatError
from asgat.training import epoch_threads as module
from asgat.training.epoch_threads import epoch_threads, forward_work, threads_sentence
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job


def jobs(config, count):
    splits = small_dataset().splits
    return [Job(splits[i % len(splits)], i, config, i) for i in range(count)]


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr("asgat.threads.available_cores", lambda: 2)  # of which a machine may have one
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_is_put_back_even_after_an_error():
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
def test_threads_follow_the_work_of_an_epoch(monkeypatch):
    config = settings("asgat-plus", form="table")
    task = make_task("asgat-plus", config, torch.float32)
    work = forward_work(task, config)
    assert epoch_threads(task, config) == 1
    monkeypatch.setattr(module, "ONE_THREAD", work - 1)
    assert epoch_threads(task, config) == 1, "no second thread would have enough to do"
    monkeypatch.setattr(module, "PER_THREAD", work // 2)
    assert epoch_threads(task, config) == 2
    monkeypatch.setattr(module, "PER_THREAD", 1)
    assert epoch_threads(task, config) == 2, "there are no more"


@pytest.mark.usefixtures("two_threads")
def test_a_given_number_of_threads_is_used_whatever_the_work(monkeypatch):
    monkeypatch.setattr("asgat.threads._given", 3)
    config = settings("asgat-plus", form="table")
    task = make_task("asgat-plus", config, torch.float32)
    assert epoch_threads(task, config) == 3
    monkeypatch.setattr(module, "ONE_THREAD", 0)
    assert epoch_threads(task, config) == 3


def test_the_sentence_names_threads_and_why(monkeypatch):
    assert threads_sentence(None) == "Threads on the CPU: as PyTorch is set."
    assert threads_sentence(1) == "Threads on the CPU: 1 thread, by the work of an epoch."
    monkeypatch.setattr("asgat.threads._given", 2)
    assert threads_sentence(2) == "Threads on the CPU: 2 threads, as given."


def test_every_training_says_its_threads(caplog):
    caplog.set_level("INFO", "asgat")
    config = settings("gcn", epochs=2)
    list(train_jobs(make_task("gcn", config), jobs(config, 1)))
    assert [record.getMessage() for record in caplog.records] == [threads_sentence(1)]


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
