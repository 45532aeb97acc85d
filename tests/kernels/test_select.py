"""select_top against sorting all scores."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import CUDA, DEVICES, EXAMPLES, captured, close_for_any_threads, opcheck
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels import RaggedRows, nodes_at, rescore, select_top
from asgat.kernels.select import _select_top, _select_top_grad

LENGTHS = st.lists(st.integers(0, 12) | st.integers(250, 300), max_size=8)


def ragged(lengths: list[int], device: str = "cpu") -> RaggedRows:
    return RaggedRows(torch.tensor([0, *lengths]).cumsum(0).to(device))


def plain(value: Tensor, rows: RaggedRows, coefficients: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """A stable sort of each row's scores."""
    heads, bounds = coefficients.size(0), rows.indptr.tolist()
    all_scores = coefficients @ value.to(coefficients.dtype).t()
    position = torch.full((heads, rows.num_rows, k), -1, device=value.device)
    score = all_scores.new_full((heads, rows.num_rows, k), -torch.inf)
    for row in range(rows.num_rows):
        ordered = all_scores[:, bounds[row] : bounds[row + 1]].sort(dim=1, descending=True, stable=True)
        kept = min(k, bounds[row + 1] - bounds[row])
        position[:, row, :kept] = ordered.indices[:, :kept] + bounds[row]
        score[:, row, :kept] = ordered.values[:, :kept]
    return position, score + 0 * coefficients.sum()  # without a row the gradient is zero, not missing


def problem(
    lengths: list[int], heads: int = 3, orders: int = 4, dtype: torch.dtype = torch.float64, device: str = "cpu"
) -> tuple[Tensor, RaggedRows, Tensor]:
    """Values and coefficients that are small integers: every score is exact, and many are equal."""
    generator = torch.Generator().manual_seed(sum(lengths) + heads)
    rows = ragged(lengths, device)
    value = torch.randint(-2, 3, (rows.num_entries, orders), generator=generator).to(device, dtype)
    coefficients = torch.randint(-3, 4, (heads, orders), generator=generator).to(device)
    return value, rows, coefficients.to(torch.promote_types(dtype, torch.float32)).requires_grad_()


def gradient(score: Tensor, position: Tensor, coefficients: Tensor) -> Tensor:
    direction = torch.linspace(-1, 2, score.numel(), dtype=score.dtype, device=score.device).view_as(score)
    kept = torch.where(position >= 0, score, 0)
    return torch.autograd.grad((kept * direction).sum(), coefficients)[0]


@pytest.mark.parametrize("device", DEVICES)
@given(lengths=LENGTHS, heads=st.integers(1, 5), orders=st.integers(1, 11), k=st.integers(1, 20))
@settings(max_examples=EXAMPLES, deadline=None)
def test_positions_scores_and_gradients(device: str, lengths: list[int], heads: int, orders: int, k: int) -> None:
    value, rows, coefficients = problem(lengths, heads, orders, device=device)
    position, score = select_top(value, rows, coefficients, k)
    expected_position, expected_score = plain(value, rows, coefficients, k)
    assert torch.equal(position, expected_position)  # ties included: they go to the lower position
    torch.testing.assert_close(score, expected_score)
    torch.testing.assert_close(
        gradient(score, position, coefficients), gradient(expected_score, expected_position, coefficients)
    )


@pytest.mark.parametrize("device", DEVICES)
@given(lengths=LENGTHS, heads=st.integers(1, 3), k=st.integers(1, 20), moved=st.sampled_from([0.0, 0.01, 1.0, 30.0]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_hint_changes_nothing(device: str, lengths: list[int], heads: int, k: int, moved: float) -> None:
    value, rows, coefficients = problem(lengths, heads, 5, device=device)
    steps = torch.arange(coefficients.numel(), dtype=coefficients.dtype, device=device).view_as(coefficients)
    before = (coefficients.detach() + moved * steps.cos()).round(decimals=3)
    hint, _ = select_top(value, rows, before, k)
    position, score = select_top(value, rows, coefficients, k, hint)
    expected_position, expected_score = select_top(value, rows, coefficients, k)
    assert torch.equal(position, expected_position)
    assert torch.equal(score, expected_score)


def test_a_table_kept_beside_its_transpose_is_the_same_and_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = pytest.importorskip("asgat.kernels.cpu.select", reason="without Numba there is no such kernel")
    value, rows, coefficients = problem([9, 0, 300, 7, 256], 2, 6, torch.float32)
    value = value + torch.linspace(0, 1, value.numel()).view_as(value)
    for change in (0.0, 1.0):
        value[3] += change
        kept = select_top(value, rows, coefficients, 6)
        with monkeypatch.context() as patched:
            patched.setattr(kernel, "TRANSPOSED_BYTES", 0)
            transposed = select_top(value, rows, coefficients, 6)
        assert all(torch.equal(a, b) for a, b in zip(kept, transposed, strict=True))
    other = ragged([300, 272])
    assert torch.equal(select_top(value, other, coefficients, 6)[0], plain(value, other, coefficients, 6)[0])


def test_hints_change_nothing_while_coefficients_drift() -> None:
    """As over many epochs: every selection is the hint of the next; with an empty one they begin in int32."""
    value, rows, coefficients = problem([40, 0, 90, 7, 300] * 4, 3, 6, torch.float32)
    generator = torch.Generator().manual_seed(0)
    value = value + 0.1 * torch.randn(value.shape, generator=generator)
    now, hint = coefficients.detach(), torch.empty(0, 0, 0, dtype=torch.int32)
    for _ in range(50):
        now = now + 0.05 * torch.randn(now.shape, generator=generator)
        hint, score = select_top(value, rows, now, 9, hint)
        expected_position, expected_score = select_top(value, rows, now, 9)
        assert hint.dtype == torch.int32
        assert torch.equal(hint.long(), expected_position)
        assert torch.equal(score, expected_score)


def test_a_hint_survives_scores_that_are_no_numbers() -> None:
    value, rows, coefficients = problem([9, 0, 4, 40], 2, 3)
    hint, _ = select_top(value, rows, coefficients, 6)
    value[hint[0, 0, 0]] = torch.nan
    value[hint[1, 3, 1]] = -torch.inf
    position, score = select_top(value, rows, coefficients, 6, hint)
    expected_position, expected_score = select_top(value, rows, coefficients, 6)
    assert torch.equal(position, expected_position)
    assert torch.equal(score, expected_score)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value_dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_storage_and_compute_dtypes(device: str, value_dtype: torch.dtype, dtype: torch.dtype) -> None:
    value, rows, coefficients = problem([5, 0, 40, 300], orders=9, device=device)
    value = torch.linspace(-2, 2, value.numel(), dtype=torch.float64, device=device).view_as(value).to(value_dtype)
    coefficients = coefficients.detach().to(dtype).requires_grad_()
    position, score = select_top(value, rows, coefficients, 6)
    assert score.dtype == dtype
    _, expected = plain(value.double(), rows, coefficients.double(), 6)
    torch.testing.assert_close(score.double(), expected, rtol=1e-5, atol=1e-5)
    at = position.clamp_min(0)
    again = torch.einsum("hp,hnkp->hnk", coefficients.double(), value.double()[at])
    torch.testing.assert_close(score.double(), again.where(position >= 0, -torch.inf), rtol=1e-5, atol=1e-5)
    grad = gradient(score, position, coefficients)
    torch.testing.assert_close(grad.double(), gradient(again, position, coefficients).double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value_dtype", [torch.float16, torch.bfloat16])
def test_every_half_precision_number_is_read_right(device: str, value_dtype: torch.dtype) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(value_dtype)
    every = every[every.isfinite()].view(-1, 1).to(device)
    rows = RaggedRows(torch.arange(every.numel() + 1, device=device))
    _, score = select_top(every, rows, torch.ones(1, 1, device=device), 1)
    assert torch.equal(score.view(-1, 1), every.float())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", [1, 7, 31, 64, 65, 255, 256, 257, 700, 2100, 9000])
def test_equal_scores_go_to_the_lowest_positions(device: str, length: int) -> None:
    rows = ragged([length, 3, length], device)
    value = torch.tensor([0.1, 0.7, -0.3, 0.9, 1.3], device=device).expand(rows.num_entries, 5).contiguous()
    coefficients = torch.tensor([[0.3, -1.1, 0.7, 0.2, 0.9], [0.0] * 5], device=device)
    position, _ = select_top(value, rows, coefficients, 10)
    for row, begin in enumerate(rows.indptr[:-1].tolist()):
        size = min(10, int(rows.indptr[row + 1]) - begin)
        assert position[:, row].tolist() == [[*range(begin, begin + size), *[-1] * (10 - size)]] * 2


@pytest.mark.parametrize("device", DEVICES)
def test_long_rows_and_many_heads(device: str) -> None:
    value, rows, coefficients = problem([3000, 40, 20_000, 0, 700], 18, 31, torch.float32, device)
    position, score = select_top(value, rows, coefficients, 20)
    expected_position, expected_score = plain(value, rows, coefficients, 20)
    assert torch.equal(position, expected_position)
    torch.testing.assert_close(score, expected_score)


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck(device: str) -> None:
    value, rows, coefficients = problem([5, 9, 0, 6], device=device)
    value = value + torch.linspace(0, 0.3, value.numel(), dtype=value.dtype, device=device).view_as(value)

    def scores(c: Tensor) -> Tensor:
        position, score = select_top(value, rows, c, 3)
        return torch.where(position >= 0, score, 0)

    spread = coefficients.detach() + torch.linspace(0, 1, 12, dtype=value.dtype, device=device).view(3, 4)
    assert torch.autograd.gradcheck(scores, spread.requires_grad_())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_diverged_coefficients_stay_in_range(device: str, poison: float) -> None:
    value, rows, coefficients = problem([5, 300, 0, 9], device=device)
    with torch.no_grad():
        coefficients[1, 2] = poison
    position, score = select_top(value, rows, coefficients, 7)
    score.sum().backward()
    begin, end = rows.indptr[:-1, None], rows.indptr[1:, None]
    assert ((position == -1) | ((position >= begin) & (position < end))).all()
    healthy, _ = plain(value, rows, coefficients.detach()[[0, 2]], 7)
    assert torch.equal(position[[0, 2]], healthy)


@pytest.mark.parametrize("device", DEVICES)
def test_wrong_arguments_are_refused(device: str) -> None:
    value, rows, coefficients = problem([5, 3], device=device)
    with pytest.raises(AsgatError, match="P"):
        select_top(value, rows, coefficients[:, :2], 2)
    with pytest.raises(AsgatError, match="end at 8"):
        select_top(value[:5], rows, coefficients, 2)
    with pytest.raises(AsgatError, match="at least 1"):
        select_top(value, rows, coefficients, 0)
    with pytest.raises(AsgatError, match="hint must have shape"):
        select_top(value, rows, coefficients, 2, rows.indptr.new_zeros(3, 2, 1))


def test_several_threads() -> None:
    value, rows, coefficients = problem([40] * 2000, 8, 9, torch.float32)
    value = value * torch.rand(value.shape, generator=torch.Generator().manual_seed(0))

    def compute() -> tuple[Tensor, ...]:
        position, score = select_top(value, rows, coefficients, 6)
        return score, gradient(score, position, coefficients)

    close_for_any_threads(compute)


def test_missing_entries_and_blocks_of_rows_do_not_show_in_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = pytest.importorskip("asgat.kernels.cpu.select", reason="without Numba there is no such kernel")
    value, rows, coefficients = problem([5, 3, 0, 70, 9], 3, 7, torch.float32)
    position, score = select_top(value, rows, coefficients, 6)
    grad = torch.randn(score.shape, generator=torch.Generator().manual_seed(0)).where(position >= 0, torch.nan)
    expected = kernel.select_top_grad(value.double(), position, grad.double())
    for block in (2, 100):
        monkeypatch.setattr(kernel, "SUMMED", block)
        torch.testing.assert_close(
            kernel.select_top_grad(value, position, grad).double(), expected, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("device", DEVICES)
def test_nodes_at_positions(device: str, dtype: torch.dtype) -> None:
    value, rows, coefficients = problem([5, 3, 0, 70], device=device)
    nodes = torch.arange(100, 100 + rows.num_entries, dtype=dtype, device=device)
    position, _ = select_top(value, rows, coefficients, 6)
    found = nodes_at(nodes, position)
    assert torch.equal(found, nodes[position])  # that of padding included
    assert found.dtype == dtype


@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_well_formed(device: str) -> None:
    value, rows, coefficients = problem([5, 3, 0, 70], device=device)
    opcheck(
        _select_top,
        value,
        rows.indptr,
        rows.order,
        rows.widths,
        rows.counts,
        coefficients,
        3,
        rows.indptr.new_empty(0, 0, 0),
    )
    position, score = select_top(value, rows, coefficients, 3)
    opcheck(_select_top_grad, value, position, torch.ones_like(score.detach()))


@pytest.mark.parametrize("device", DEVICES)
def test_compiles_without_a_break(device: str) -> None:
    value, rows, coefficients = problem([5, 3, 0, 70], device=device)
    compiled = torch.compile(select_top, fullgraph=True, backend="aot_eager")
    position, score = compiled(value, rows, coefficients, 3)
    expected_position, expected_score = plain(value, rows, coefficients, 3)
    assert torch.equal(position, expected_position)
    torch.testing.assert_close(
        gradient(score, position, coefficients), gradient(expected_score, expected_position, coefficients)
    )


@pytest.mark.parametrize("device", [CUDA])
def test_captured_step_replays(device: str) -> None:
    value, rows, coefficients = problem([5, 3, 0, 70, 400, 1500] * 20, 5, 9, torch.float32, device)

    def step() -> tuple[Tensor, ...]:
        position, score = select_top(value, rows, coefficients, 6)
        return position, score, gradient(score, position, coefficients)

    graph, outputs = captured(step)
    with torch.no_grad():
        coefficients.copy_(-coefficients.flip(0))
    graph.replay()
    position, score = plain(value, rows, coefficients, 6)
    assert torch.equal(outputs[0], position)
    assert torch.equal(outputs[1], score)
    torch.testing.assert_close(outputs[2], gradient(score, position, coefficients))


def test_rescore_repeats_scores_and_their_gradient():
    generator = torch.Generator().manual_seed(0)
    value = torch.randn(12, 3, dtype=torch.float64, generator=generator)
    rows = RaggedRows(torch.tensor([0, 5, 5, 12]))
    coefficients = torch.randn(2, 3, dtype=torch.float64, generator=generator).requires_grad_()
    position, score = select_top(value, rows, coefficients, 6)
    again = rescore(value, coefficients, position, score.detach())
    assert torch.equal(again, score)
    weight = torch.randn(score.shape, dtype=torch.float64, generator=generator)
    finite = torch.isfinite(score)
    (expected,) = torch.autograd.grad((weight * score)[finite].sum(), coefficients, retain_graph=True)
    (found,) = torch.autograd.grad((weight * again)[finite].sum(), coefficients)
    assert torch.equal(found, expected)
    opcheck(torch.ops.asgat.rescore.default, value, coefficients, position, score.detach())
