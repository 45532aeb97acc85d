"""The same seed and the same number of threads give the same numbers on one machine, to the last bit."""

import os

import pytest
import torch

from asgat.cli.app import app
from asgat.cli.options import ALWAYS_DETERMINISTIC, be_deterministic, check_device
from asgat.data import load_dataset
from asgat.nn.registry import make_config
from asgat.threads import set_threads
from asgat.training.runner import Callbacks, run

TABLE = {"heads": 2, "k": 4, "form": "table", "candidates": 8, "order": 6, "hidden": 8}
MODELS = {"mlp": {}, "gcn": {}, "gat": {}, "chebnet": {}, "asgat-cheb": TABLE, "asgat-plus": TABLE, "asgat-arma": TABLE}
CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available")
)


def numbers(model, device="cpu", epochs=6):
    config = make_config(model, **MODELS[model], epochs=epochs, patience=99, max_restarts=0)
    history = []
    data = load_dataset("csbm")
    callbacks = Callbacks(progress=lambda i, epoch: history.append((i, epoch)))
    result = run(data, model, config, [0, 1], 5, device, callbacks=callbacks)
    times = ("seconds", "peak_memory_mb")
    return [{key: value for key, value in row.items() if key not in times} for row in result["rows"]], history


@pytest.fixture
def restored():
    before = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    yield
    torch.use_deterministic_algorithms(False)
    if before is None:
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)


@pytest.fixture(params=[1, 2])
def threads(request):
    set_threads(request.param)
    yield request.param
    set_threads(None)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.usefixtures("restored", "threads")
def test_two_runs_are_bit_identical(model, device):
    check_device(device, deterministic=True)
    assert numbers(model, device) == numbers(model, device)


@pytest.mark.usefixtures("restored")
def test_on_the_cpu_the_option_has_no_effect_and_says_so(capsys):
    check_device("cpu")
    assert capsys.readouterr().err == ""
    check_device("cpu", deterministic=True)
    assert " ".join(capsys.readouterr().err.split()) == ALWAYS_DETERMINISTIC
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.usefixtures("restored")
def test_on_cuda_deterministic_algorithms_are_enabled():
    be_deterministic()
    assert torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] in (":4096:8", ":16:8")


@pytest.mark.parametrize("command", ["train", "compare", "fit"])
def test_the_commands_that_train_have_the_option(command):
    from typer.main import get_command

    found = get_command(app).commands[command]  # type: ignore[attr-defined]
    assert "--deterministic" in [name for parameter in found.params for name in parameter.opts]
