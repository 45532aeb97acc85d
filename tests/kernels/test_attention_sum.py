"""Attention in one kernel, against softmax, dropout and sums in plain PyTorch. It exists on the CPU only."""

import pytest
import torch
from tests.kernels.devices import close_for_any_threads

from asgat.kernels.attention_sum import attention_sum, fits_attention_sum
from asgat.kernels.cpu import attention_sum as kernels
from asgat.kernels.dropout import dropout

P = 0.3


def inputs(heads=2, rows=150, size=5, nodes=170, width=7, dtype=torch.float64, index_dtype=torch.int32):
    torch.manual_seed(0)
    score = torch.randn(heads, rows, size, dtype=dtype)
    score[:, 0, 3:] = -torch.inf  # padding
    index = torch.randint(nodes, (rows, heads, size), dtype=index_dtype).transpose(0, 1)
    x, bias = torch.randn(nodes, width, dtype=dtype), torch.randn(heads, width, dtype=dtype)
    return score.requires_grad_(), index, x.requires_grad_(), bias.requires_grad_()


def plain(score, index, x, bias, p=0.0):
    torch.manual_seed(3)
    weight = dropout(score.softmax(-1), p)
    out = (weight.unsqueeze(-1) * x[index.long()]).sum(-2).transpose(0, 1)
    return out if bias is None else out + bias


def fused(score, index, x, bias, p=0.0):
    torch.manual_seed(3)
    return attention_sum(score, index, x, bias, p)


def gradients(out, wanted):
    factor = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * factor).sum(), wanted)


@pytest.mark.parametrize("p", [0.0, P], ids=["all", "dropout"])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("scattered", [kernels.SCATTERED, 0], ids=["at random", "by buckets"])
def test_values_and_gradients_are_those_of_plain_pytorch(p, index_dtype, biased, scattered, monkeypatch):
    monkeypatch.setattr(kernels, "SCATTERED", scattered)
    score, index, x, bias = inputs(index_dtype=index_dtype)
    given = score, index, x, bias if biased else None
    out, expected = fused(*given, p), plain(*given, p)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    wanted = [score, x, bias][: 2 + biased]
    for got, want in zip(gradients(out, wanted), gradients(expected, wanted), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        assert torch.equal(fused(*given, p), out)


def test_in_single_precision():
    score, index, x, bias = inputs(dtype=torch.float32)
    out, expected = fused(score, index, x, bias, P), plain(score, index, x, bias, P)
    torch.testing.assert_close(out, expected)
    for got, want in zip(gradients(out, [score, x]), gradients(expected, [score, x]), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_only_what_needs_a_gradient_gets_one():
    score, index, x, _ = inputs()
    (alone,) = gradients(fused(score, index, x.detach(), None), [score])
    assert torch.equal(alone, gradients(fused(score, index, x, None), [score])[0])
    (to_x,) = gradients(fused(score.detach(), index, x, None), [x])
    assert torch.equal(to_x, gradients(fused(score, index, x, None), [x])[0])


def test_several_threads():
    score, index, x, bias = inputs(rows=20_000, nodes=20_000, size=8, width=16, dtype=torch.float32)

    def compute():
        out = fused(score, index, x, bias, P)
        return out.detach(), *gradients(out, [score, x, bias])

    close_for_any_threads(compute)


def test_what_it_does_not_serve():
    score, _, x, _ = inputs()
    assert fits_attention_sum(score, x)
    assert not fits_attention_sum(score.float(), x)
    assert not fits_attention_sum(score.half(), x.half())
    assert not fits_attention_sum(score[..., :0], x)
    assert not fits_attention_sum(score.to("meta"), x.to("meta"))
