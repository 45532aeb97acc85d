import pytest
import torch
from tests.training.batch_programs import DATA, batched

from asgat.disk.converter import write_graph
from asgat.training import batched_deep, kept_rows
from asgat.training.batched_deep import BatchedDeep

CHANNELS = ["attention", "filters", "mean", "attention+filters", "attention+filters+mean"]
TRAIN = torch.from_numpy(DATA.splits[0].train)


def parts_of(program, changes=None):
    return batched("asgat-deep", program, {"layers": 2, **(changes or {})}).batched


@pytest.mark.parametrize("channels", CHANNELS)
def test_right_after_an_evaluation_logits_are_those_of_the_whole(channels, monkeypatch):
    """Whatever is computed again: what is kept stands in for the rest."""
    for fresh in (1, 2, 4):
        monkeypatch.setattr(batched_deep, "BATCH_ROWS", fresh)
        step = parts_of(9, {"channels": channels})
        whole = step.evaluate()
        assert torch.allclose(step.logits(TRAIN[:9]), whole[TRAIN[:9]], atol=1e-10)


def test_a_step_is_that_of_its_formula(monkeypatch):
    """With dense matrices: kept terms with the present coefficients, and the change of fresh rows between them."""
    monkeypatch.setattr(batched_deep, "BATCH_ROWS", 2)
    step = parts_of(10, {"layers": 1, "channels": "filters"})
    rows, block = TRAIN[:10].sort().values, step.blocks[0]
    old = step.net.encode(step.features.x, step.operator).detach()
    with torch.no_grad():
        for parameter in step.net.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    fresh = step._part(block, rows).fresh
    assert len(fresh) == 20
    assert fresh[:10].equal(rows)
    kept_norm = step.kept[0].norm
    before = torch.nn.functional.layer_norm(old, old.shape[1:], *kept_norm)
    h = step.net.encode(step.features.x, step.operator)
    z = block.normalise(h, step.operator)
    matrix = torch.from_numpy(step.operator.shifted.matrix.toarray())
    coefficients = step.operator.coefficients(block.filters.filter)

    def response(x, signal):
        polynomial = [torch.eye(len(x), dtype=x.dtype), x]
        while len(polynomial) < coefficients.size(1):
            polynomial.append(2 * x @ polynomial[-1] - polynomial[-2])
        heads = zip(coefficients, signal.chunk(len(coefficients), dim=1), strict=True)
        terms = [sum(c * p for c, p in zip(head, polynomial, strict=True)) @ own for head, own in heads]
        return torch.cat(terms, dim=1)

    filtered = response(matrix, before)[rows]
    filtered = filtered + response(matrix[fresh][:, fresh], z[fresh] - before[fresh])[:10]
    out = step.net.decode(block.update(h[rows], z[rows], [filtered], step.operator), step.operator)
    assert torch.allclose(step.logits(rows), out, atol=1e-10)
    parameters = list(step.net.parameters())
    one, other = (torch.autograd.grad(logits.square().sum(), parameters) for logits in (step.logits(rows), out))
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(one, other, strict=True))


def test_what_is_kept_is_used():
    step = parts_of(9, {"channels": "attention+filters+mean"})
    before = step.logits(TRAIN[:9])
    for name in ("h", "terms", "mean"):
        tensor = getattr(step.kept[1], name)
        tensor.neg_()  # a shift alone would not pass a LayerNorm
        assert not torch.allclose(step.logits(TRAIN[:9]), before, atol=1e-3), name
        tensor.neg_()


@pytest.mark.parametrize("channels", CHANNELS)
def test_the_evaluation_is_that_of_the_model(channels):
    for size in (7, 120):
        step = parts_of(size, {"channels": channels})
        assert torch.allclose(step.evaluate(), step.net(step.features.x, step.operator), atol=1e-10)


def test_a_model_without_attention_needs_no_table():
    step = parts_of(9, {"channels": "filters+mean", "form": "auto"})
    assert step.rows is None
    assert step.logits(TRAIN[:9]).shape == (9, 2)


def test_only_training_nodes_have_terms_in_the_last_block(monkeypatch):
    monkeypatch.setattr(kept_rows, "KEPT_BYTES", 0)
    step = parts_of(9)
    assert [tuple(kept.terms.shape) for kept in step.kept] == [(120, 5, 4), (len(TRAIN), 5, 4)]
    assert torch.isfinite(step.logits(TRAIN[:9])).all()


def test_a_graph_on_disk_is_read_by_rows(tmp_path):
    """One block on mapped arrays: the same logits and gradients as in memory."""
    ends, weight = DATA.graph.edges_once()
    graph = write_graph(tmp_path / "graph", [(*ends, weight)], DATA.x, DATA.y, order="none")
    step = parts_of(9, {"layers": 1})
    operator = step.operator.to()
    operator.shifted.matrix = graph.matrix()
    x = torch.from_numpy(graph.features(0, 120)).double()
    mapped = BatchedDeep(step.net, x, operator, 9, TRAIN)
    assert torch.allclose(mapped.evaluate(), step.evaluate(), atol=1e-10)
    assert torch.allclose(mapped.logits(TRAIN[:9]), step.logits(TRAIN[:9]), atol=1e-10)
