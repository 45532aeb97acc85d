import pytest
from tests.spectral.test_spectral_operator import TwoCandidates

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.spectral import SpectralOperator
from asgat.spectral.graph_operator import as_graph_operator


class ScoresOnly(SpectralOperator):
    def scores(self, filter, rows=None, include_unreachable=False): ...
    def _move(self): ...


def test_dense_puts_candidates_in_their_places():
    full = TwoCandidates().dense(HeatFilter(2))
    assert full[1].tolist() == [[1, 0, 0, 0], [0, 3, 2, 0], [0, 0, 5, 4], [6, 0, 0, 7]]


def test_an_operator_that_cannot_filter_signals_is_refused():
    whole = TwoCandidates()
    assert as_graph_operator(whole) is whole
    with pytest.raises(AsgatError, match="ScoresOnly holds only some rows of a graph and cannot filter a signal"):
        as_graph_operator(ScoresOnly())
