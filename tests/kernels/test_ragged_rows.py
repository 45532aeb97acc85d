"""RaggedRows: what is refused, and how rows fall into buckets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.kernels import RaggedRows
from asgat.kernels.ragged_rows import WORTH_A_LAUNCH, buckets


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_every_row_fits_its_bucket(lengths: list[int]) -> None:
    widths, counts = buckets(torch.tensor(lengths, dtype=torch.int64))
    assert sum(counts) == len(lengths)
    assert list(widths) == sorted(set(widths))
    in_buckets = [width for width, count in zip(widths, counts, strict=True) for _ in range(count)]
    assert all(length <= width for length, width in zip(sorted(lengths), in_buckets, strict=True))


def test_short_rows_do_not_pay_for_long_ones() -> None:
    many = WORTH_A_LAUNCH // 64 + 1
    widths, counts = buckets(torch.tensor([3] * many + [1000] * 5 + [70] * 2))
    assert (widths, counts) == ((64, 1024), (many, 7))


def test_no_rows() -> None:
    rows = RaggedRows(torch.zeros(1, dtype=torch.int64))
    assert (rows.num_rows, rows.num_entries) == (0, 0)
    assert buckets(torch.zeros(0, dtype=torch.int64)) == ((), ())


@pytest.mark.parametrize("bounds", [[1, 2], [0, 3, 2]])
def test_bounds_that_are_none_are_refused(bounds: list[int]) -> None:
    with pytest.raises(AsgatError, match="indptr"):
        RaggedRows(torch.tensor(bounds))


@pytest.mark.parametrize("bounds", [torch.zeros(2), torch.zeros(0, dtype=torch.int64), torch.zeros(1, 2).long()])
def test_tensors_of_the_wrong_kind_are_refused(bounds: torch.Tensor) -> None:
    with pytest.raises(AsgatError, match="int64"):
        RaggedRows(bounds)
