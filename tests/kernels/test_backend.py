import pytest
import torch

from asgat.kernels import backend


@pytest.fixture
def load():
    caches = backend._load, backend._has_compiler
    for cached in caches:
        cached.cache_clear()
    yield lambda device: backend._load("select", device).__name__
    for cached in caches:
        cached.cache_clear()


def test_each_device_has_its_compiler(load, monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    assert load("cpu") == "asgat.kernels.cpu.select"
    assert load("meta") == "asgat.kernels.plain", "a device without a compiler"


def test_without_the_compiler_plain_torch_serves(load, monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    assert load("cpu") == load("cuda") == "asgat.kernels.plain"
    assert not backend.is_compiled(torch.device("cpu"))


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ([torch.float16], torch.float32),
        ([torch.float32, torch.bfloat16], torch.float32),
        ([torch.float16, torch.float64], torch.float64),
    ],
)
def test_compute_dtype(dtypes, expected):
    assert backend.compute_dtype(*(torch.zeros(1, dtype=dtype) for dtype in dtypes)) == expected
