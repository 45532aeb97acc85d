import pytest
import torch
from tests.strategies import ZOO

from asgat.nn import ASGAT
from asgat.nn.attention_model import AttentionModel
from asgat.nn.ensemble import Ensemble
from asgat.tables.table_operator import TableOperator


class TwoAttentions(AttentionModel):
    """A model of another form."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = ASGAT(3, 4, 2, k=3, num_layers=1), ASGAT(3, 4, 2, heads=2, k=3)

    @property
    def convs(self):
        return [*self.first.convs, *self.second.convs]

    def reset_parameters(self) -> None:
        self.first.reset_parameters()
        self.second.reset_parameters()


def test_a_model_is_certified_by_its_layers():
    operator = TableOperator(ZOO["generic"], order=4, candidates=4)
    certificates = TwoAttentions().certificates(operator)
    assert [tuple(c.bound.shape) for c in certificates] == [(1, 14), (2, 14), (1, 14)]
    assert not any(c.bound.requires_grad for c in certificates)
    assert len(Ensemble([TwoAttentions(), TwoAttentions()]).certificates(operator)) == 2 * len(certificates)


def test_layers_have_to_be_named():
    class Nothing(AttentionModel):
        pass

    with pytest.raises(TypeError, match="convs"):
        Nothing()  # type: ignore[abstract]
    assert isinstance(ASGAT(3, 4, 2), AttentionModel)
    assert not isinstance(torch.nn.Linear(1, 1), AttentionModel)
