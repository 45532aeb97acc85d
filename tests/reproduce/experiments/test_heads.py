import itertools

import pytest
import torch
import torch.nn.functional as F
from tests.strategies import ZOO

from asgat.nn import ASGAT
from reproduce.experiments.heads import heads_removed

GRAPH = ZOO["generic"]


@pytest.mark.parametrize("factor", [1.0, 3.0])
@pytest.mark.parametrize("heads", [list(c) for n in range(4) for c in itertools.combinations(range(3), n)])
def test_removed_heads_have_attention_weights_of_zero(heads, factor):
    torch.manual_seed(0)
    model = ASGAT(5, 4, 3, heads=3, k=4).eval()
    x = torch.randn(GRAPH.num_nodes, 5)
    _, (first, second) = model(x, GRAPH, return_attention_weights=True)
    conv, last = model.convs
    with torch.no_grad():
        conv.bias.normal_()  # type: ignore[union-attr]
        weights = factor * first.to_dense()
        weights[heads] = 0.0
        hidden = F.elu((weights @ (x @ conv.weight)).transpose(0, 1).flatten(1) + conv.bias)
        truth = F.elu((second.to_dense()[0] @ (hidden @ last.weight)) + last.bias)
        untouched = model(x, GRAPH)
        with heads_removed(conv, heads, factor):
            out = model(x, GRAPH)
        torch.testing.assert_close(out, truth, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(model(x, GRAPH), untouched)
        assert torch.allclose(out, untouched, atol=1e-6) is (not heads and factor == 1.0)


def test_heads(run_quick, study):
    result, text, files = run_quick("heads")
    (row,) = result["rows"]
    assert row["heads"] == 12
    trained = study.train("karate", "asgat-cheb", 0, heads=12)
    assert row["full"] == trained.result["micro_f1"]["per_run"]
    assert [len(run) for part in ("keep", "scaled", "drop") for run in row[part]] == [12] * 6
    assert row["paper"] == {"keep": None, "scaled": None, "drop": None}
    assert "one head kept" in text
    assert [file.name for file in files] == ["heads.json", "heads.png"]
