from tests.spectral.test_spectral_operator import TwoCandidates

from asgat.filters import HeatFilter


def test_dense_puts_candidates_in_their_places():
    full = TwoCandidates().dense(HeatFilter(2))
    assert full[1].tolist() == [[1, 0, 0, 0], [0, 3, 2, 0], [0, 0, 5, 4], [6, 0, 0, 7]]
