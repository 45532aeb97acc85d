import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.batch_programs import batched

from asgat.training import batched_asgat


@settings(max_examples=10)
@given(st.lists(st.integers(0, 119), min_size=1, max_size=30, unique=True))
def test_logits_of_a_batch_are_those_of_the_whole_where_nothing_is_kept(nodes):
    step = batched("asgat-plus", 120).batched
    whole, rows = step.evaluate(), torch.tensor(nodes)
    assert torch.allclose(step.logits(rows), whole[rows], atol=1e-10)


def test_kept_states_stand_in_for_what_is_not_computed(monkeypatch):
    """Fresh from an evaluation they are the same numbers; gradients pass through the computed ones only."""
    monkeypatch.setattr(batched_asgat, "BATCH_ROWS", 1)
    step = batched("asgat-plus", 10).batched
    whole, rows = step.evaluate(), torch.arange(0, 40, 4)
    assert torch.allclose(step.logits(rows), whole[rows], atol=1e-10)
    parts = [step._part(layer, rows, 10) for layer in range(len(step.net.convs))]
    assert all(len(fresh) == 10 and len(kept) for _, fresh, kept in parts)
    for kept in step.hidden:
        kept += 1.0
    assert not torch.allclose(step.logits(rows), whole[rows], atol=1e-3), "they are used"


def test_the_evaluation_does_not_depend_on_the_size_of_its_blocks():
    small, large = (batched("asgat-plus", size).batched for size in (7, 120))
    assert torch.allclose(small.evaluate(), large.evaluate(), atol=1e-10)


def test_an_evaluation_of_some_nodes_leaves_out_what_they_cannot_attend_to():
    program, nodes = batched("asgat-plus", 7), torch.tensor([3, 50, 51])
    whole = program.batched
    x, operator = program.task.inputs
    part = batched_asgat.BatchedASGAT(whole.net, x, operator, 7, nodes)
    assert torch.allclose(part.evaluate()[nodes], whole.evaluate()[nodes], atol=1e-10)
    assert len(part.evaluated[-1]) == 3
    assert len(part.evaluated[0]) <= 120
