import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asgat.spectral.top_k import row_blocks, top_by_blocks, top_k

TYING = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, float("-inf"), float("inf"), 0.5])


def finite(dtype):
    return st.floats(allow_nan=False, width=32 if dtype == torch.float32 else 64)


def expected(row, k):
    """Largest first, ties to the lower position; numpy's sort holds -0.0 and 0.0 for equal."""
    return np.argsort(-np.asarray(row, dtype=np.float64), kind="stable")[:k]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=60)
@given(data=st.data(), rows=st.integers(1, 4), columns=st.integers(1, 12), k=st.integers(1, 14))
def test_is_a_stable_sort(dtype, data, rows, columns, k):
    entry = st.one_of(TYING, TYING, finite(dtype))
    row = st.lists(entry, min_size=columns, max_size=columns)
    values = data.draw(st.lists(row, min_size=rows, max_size=rows))
    score = torch.tensor(values, dtype=dtype)
    position = top_k(score, k)
    assert position.shape == (rows, min(k, columns))
    assert position.dtype == torch.int64
    for i in range(rows):
        assert position[i].tolist() == expected(score[i].numpy(), k).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_negative_zero_ties_with_zero(dtype):
    assert top_k(torch.tensor([-0.0, 0.0, -0.0], dtype=dtype), 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbouring_numbers_are_told_apart(dtype):
    for start in (-1.0, 1.0, -3e38, 1e-40):
        ladder = [torch.tensor(start, dtype=dtype)]
        for _ in range(5):
            ladder.append(torch.nextafter(ladder[-1], torch.tensor(torch.inf, dtype=dtype)))
        assert top_k(torch.stack(ladder), 6).tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_ties_in_long_rows(dtype):
    score = torch.from_numpy(np.random.default_rng(0).integers(-2, 3, (2, 3, 5000))).to(dtype)
    position = top_k(score, 1500)
    for i, j in np.ndindex(2, 3):
        assert position[i, j].tolist() == expected(score[i, j].numpy(), 1500).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_to_choose_from(dtype):
    assert top_k(torch.empty(2, 0, 0, dtype=dtype), 3).shape == (2, 0, 0)
    assert top_k(torch.empty(2, 5, 0, dtype=dtype), 3).shape == (2, 5, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_scores_are_left_as_they_are(dtype):
    score = torch.tensor([[-1.0, -0.0, 2.0]], dtype=dtype, requires_grad=True)
    before = score.detach().clone()
    assert not top_k(score, 2).requires_grad
    assert torch.equal(score, before)
    assert torch.signbit(score[0, 1])


@pytest.mark.parametrize(
    ("rows", "per_row", "limit", "sizes"), [(7, 10, 35, [3, 3, 1]), (4, 10, 1, [1] * 4), (0, 0, 9, [0])]
)
def test_blocks_of_rows_fit_the_limit_and_hold_one_row_at_least(rows, per_row, limit, sizes):
    blocks = list(row_blocks(rows, per_row, limit))
    assert [block.stop - block.start for block in blocks] == sizes
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))


def test_top_by_blocks_is_top_of_the_whole_sum():
    generator = torch.Generator().manual_seed(0)
    basis, c = torch.randn(3, 5, 6, generator=generator), torch.randn(2, 3, generator=generator, requires_grad=True)
    apart = torch.rand(5, 6, generator=generator) < 0.3
    whole = torch.tensordot(c, basis, dims=1).masked_fill(apart, -torch.inf)

    def terms(rows):
        return torch.tensordot(c, basis[:, rows], dims=1), basis[:, rows], apart[rows]

    index, score = top_by_blocks([slice(0, 2), slice(2, 5)], terms, c, 4, -torch.inf)
    assert torch.equal(index, top_k(whole, 4))
    torch.testing.assert_close(score, whole.gather(-1, index))
    kept = ~torch.isneginf(score)
    (ours,) = torch.autograd.grad(score[kept].sum(), c)
    (theirs,) = torch.autograd.grad(whole.gather(-1, index)[kept].sum(), c)
    torch.testing.assert_close(ours, theirs)
