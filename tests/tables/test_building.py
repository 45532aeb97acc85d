import threading

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.tables.building import check_build, map_in_order


def test_all_rows_by_default_and_the_given_ones_otherwise():
    assert check_build(3, 1, 1, None, torch.float32).tolist() == [0, 1, 2]
    assert check_build(3, 1, 1, [2, 0, 2], torch.float16).tolist() == [2, 0, 2]
    assert check_build(0, 1, 1, np.empty(0), torch.float64).tolist() == []


@pytest.mark.parametrize("threads", [1, 3])
def test_map_in_order_takes_as_many_threads_as_it_may_and_little_ahead(threads, monkeypatch):
    monkeypatch.setattr("asgat.threads._given", threads)
    taken: list[int] = []
    names, first = set(), threading.Barrier(threads)

    def work(x):
        names.add(threading.current_thread().name)
        if x < threads:  # nobody goes on before every thread has something to do
            first.wait(60)
        return x

    results = map_in_order(work, (taken.append(i) or i for i in range(40)))  # type: ignore[func-returns-value, arg-type]
    assert next(results) == 0
    assert len(taken) == 2 * threads + 1
    assert list(results) == list(range(1, 40))
    assert len(names) == threads


def test_map_in_order_keeps_the_order_and_passes_errors_on():
    assert list(map_in_order(lambda x: x * x, range(50))) == [x * x for x in range(50)]

    def fail(x):
        raise AsgatError(f"{x} is wrong.")

    with pytest.raises(AsgatError, match="0 is wrong"):
        list(map_in_order(fail, range(50)))
