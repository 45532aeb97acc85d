import pytest
import torch
from tests.training.small import make_task, settings, small_dataset
from tests.training.tiny import quick

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.training import lanes
from asgat.training.lanes import Layout
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job


def jobs(config, count):
    splits = small_dataset().splits
    return [Job(splits[i % len(splits)], i, config, i) for i in range(count)]


def figures(task, own, at_once=None):
    outcomes = dict(train_jobs(task, own, at_once))
    return {i: {**vars(outcome), "seconds": 0, "state": 0} for i, outcome in outcomes.items()}, outcomes


@pytest.fixture
def two_threads():
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
    pairs = config.heads * len(task.y) * config.k
    assert Layout.of(task, config) == Layout(1, lanes.MOST_STACKED, True)
    assert Layout.of(task, config.replace(k=10**6)) == Layout(1, lanes.MOST_STACKED, True), "k is at most all nodes"
    monkeypatch.setattr(lanes, "SEVERAL_LANES", pairs)
    monkeypatch.setattr(lanes, "IN_CACHE", 3 * pairs + 1)
    assert Layout.of(task, config) == Layout(2, 3, True)
    monkeypatch.setattr(lanes, "ONE_THREAD", pairs - 1)
    assert Layout.of(task, config) == Layout(1, 1, False)
    assert Layout.of(task, quick()) == Layout()
    assert [Layout(2, 3).room(at_once) for at_once in (None, 4, 9)] == [6, 4, 6]
    assert (Layout().room(None), Layout().room(5)) == (None, 5)
