import copy

import pytest
import torch

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.spectral import GraphOperator, SpectralOperator
from asgat.spectral.spectral_operator import check_k


class TwoCandidates(GraphOperator):
    """The least an operator may be: it holds some pairs only, here v itself and the next node."""

    num_nodes, lambda_max, dtype, device = 4, 2.0, torch.float32, torch.device("cpu")

    def scores(self, filter, rows=None, include_unreachable=False):
        node = torch.arange(4)
        index = torch.stack([(node + 1) % 4, node], dim=1)[rows or slice(None)]
        score = torch.stack([torch.full((4, 2), 0.5), torch.arange(8.0).view(4, 2)])
        return index, score[:, rows or slice(None)]

    def apply(self, filter, signal):
        return self.dense(filter) @ signal

    def _move(self): ...


def test_top_translates_positions_among_candidates_into_nodes():
    index, score = TwoCandidates().top(HeatFilter(2), 1)
    assert index.squeeze(-1).tolist() == [[1, 2, 3, 0], [0, 1, 2, 3]]  # head 0 ties: first candidate
    assert score.squeeze(-1).tolist() == [[0.5] * 4, [1.0, 3.0, 5.0, 7.0]]
    assert TwoCandidates().top(HeatFilter(2), 9)[0].shape == (2, 4, 2)


def test_repr_names_the_class():
    assert repr(TwoCandidates()) == "TwoCandidates(num_nodes=4)"


def test_an_operator_without_scores_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        SpectralOperator()  # type: ignore[abstract]


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(k):
    with pytest.raises(AsgatError, match=f"k must be at least 1, but is {k}; None keeps every reachable node"):
        check_k(k)


@pytest.mark.parametrize("k", [None, 1, 100])
def test_other_k_are_welcome(k):
    check_k(k)


def test_where_all_pairs_are_scored_there_is_no_error():
    index, score = TwoCandidates().top(HeatFilter(2), 1)
    certificate = TwoCandidates().certify(HeatFilter(2), index, score)
    assert certificate.bound.tolist() == [[0.0] * 4] * 2
    assert certificate.exact.tolist() == [[True] * 4] * 2


def test_a_deep_copy_is_the_operator_itself():
    operator = TwoCandidates()
    assert copy.deepcopy({"kept": operator})["kept"] is operator


def test_to_moves_a_copy_and_returns_the_operator_where_nothing_changes():
    operator = TwoCandidates()
    moved = operator.to(dtype=torch.float64)
    assert (moved.dtype, operator.dtype) == (torch.float64, torch.float32)
    assert operator.to("cpu") is operator


def test_only_arma_operators_record_fallbacks():
    assert not TwoCandidates.records_fallbacks
    assert TwoCandidates().take_fallback() is None
