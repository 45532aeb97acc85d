import torch
from torch import nn

from asgat.training.flat_parameters import ALIGNED, FlatParameters, joined


def parameters():
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape)) for shape in [(2, 3, 5), (2, 64), (2, 1)]]


def test_parameters_become_views_with_the_same_values():
    held = parameters()
    before = [value.detach().clone() for value in held]
    flat = FlatParameters(held)
    for value, start, view in zip(held, before, flat.views(flat.value), strict=True):
        assert torch.equal(value, start)
        assert value.data_ptr() == view.data_ptr()
        assert value.data_ptr() % (4 * ALIGNED) == flat.value.data_ptr() % (4 * ALIGNED)
    flat.value.zero_()
    assert all(not value.any() for value in held)


def test_views_of_several_copies():
    flat = FlatParameters(parameters())
    copies = flat.value.expand(4, -1).clone()
    assert [view.shape for view in flat.views(copies)] == [(4, *shape) for shape in flat.shapes]


def test_blocks_cover_every_entry_once_and_find_its_gradient():
    flat = FlatParameters(parameters())
    gradients = [torch.randn(shape).transpose(0, 1).contiguous().transpose(0, 1) for shape in flat.shapes]
    assert flat.groups(30) == [[0, 2], [1]]
    found, count = torch.zeros_like(flat.value), torch.zeros(flat.value.numel(), dtype=torch.long)
    for group in flat.groups(30):
        own = joined([gradients[i] for i in group])
        for begin, end, at in flat.blocks(group, 7).tolist():
            assert end - begin <= 7
            count[begin:end] += 1
            found[begin:end] = own[at : at + end - begin]
    for view, gradient in zip(flat.views(found), gradients, strict=True):
        assert torch.equal(view, gradient)
    assert all((view == 1).all() for view in flat.views(count))
    assert count.sum() == sum(shape.numel() for shape in flat.shapes)
