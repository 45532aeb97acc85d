import torch
from tests.training.batch_programs import batched

from asgat.training.batch_rows import BatchRows, most_frequent, without


def test_attended_nodes_are_those_of_the_layer():
    step = batched("asgat-plus", 120).batched
    conv, rows = step.net.convs[0], torch.tensor([5, 2, 77])
    operator, nodes, times = BatchRows(step.rows.operator).attended(conv, rows)
    attention = conv.attention(step.rows.operator)
    index, weight = attention.index[:, rows], attention.weight[:, rows]
    expected, counts = index[weight > 0].long().unique(return_counts=True)
    assert nodes.equal(expected)
    assert times.equal(counts)
    order = torch.cat([rows, without(nodes, times, rows)[0]])
    renumbered = conv.attention(step.rows.renumbered(operator, order))
    assert order[renumbered.index[renumbered.weight > 0].long()].equal(index[weight > 0].long())


def test_the_most_frequent_nodes_are_taken_ties_to_the_lower():
    nodes, times = torch.tensor([1, 4, 6, 9]), torch.tensor([1, 2, 1, 3])
    assert most_frequent(nodes, times, 3).tolist() == [1, 4, 9]
    assert most_frequent(nodes, times, 4) is nodes
    assert most_frequent(nodes, times, -2).tolist() == []


def test_excluded_nodes_are_left_out():
    nodes, times = without(torch.tensor([1, 4, 6]), torch.tensor([1, 2, 3]), torch.tensor([4, 5]))
    assert nodes.tolist() == [1, 6]
    assert times.tolist() == [1, 3]
