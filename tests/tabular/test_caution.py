"""Notes that Python warns of."""

import json
import warnings

import pytest

from asgat.tabular.caution import Caution, warn_of


def test_only_cautions_are_warnings():
    with pytest.warns(UserWarning, match=r"^a likely mistake$") as caught:
        warn_of(["a note", Caution("a likely mistake")])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of(["a note"])
    assert json.dumps([Caution("text")]) == '["text"]'
