import pytest
from tests.spectral.test_spectral_operator import TwoCandidates

from asgat.errors import AsgatError
from asgat.spectral import SpectralOperator
from asgat.spectral.signal_operator import as_signal_operator


class ScoresOnly(SpectralOperator):
    def scores(self, filter, rows=None, include_unreachable=False): ...
    def _move(self): ...


def test_an_operator_that_cannot_filter_signals_is_refused():
    whole = TwoCandidates()
    assert as_signal_operator(whole) is whole
    with pytest.raises(AsgatError, match="ScoresOnly holds only some rows of a graph and cannot filter a signal"):
        as_signal_operator(ScoresOnly())
