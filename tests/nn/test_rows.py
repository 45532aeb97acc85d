import torch

from asgat.nn.rows import by_copy, by_node


def test_copies_of_a_node_are_next_to_each_other():
    x = torch.arange(24.0).view(4, 6)
    copies = by_copy(x, 2)
    assert copies.shape == (8, 3)
    assert torch.equal(copies[0::2], x[:, :3])
    assert torch.equal(copies[1::2], x[:, 3:])
    assert torch.equal(by_node(copies), x)
    assert by_copy(x, 1) is x
