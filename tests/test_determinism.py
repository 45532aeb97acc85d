"""The same seed gives the same numbers: bit-identical on one device, up to rounding with other numbers of threads."""

import os

import pytest
import torch
from threadpoolctl import threadpool_limits

from asgat.cli.app import app
from asgat.cli.options import ALWAYS_DETERMINISTIC, be_deterministic, check_device
from asgat.data import load_dataset
from asgat.nn.registry import make_config
from asgat.recipe import load_config
from asgat.training import lanes
from asgat.training.runner import Callbacks, run

TOLERANCE = 1e-4  # of losses, between numbers of threads; docs/reliability.md
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


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.usefixtures("restored")
def test_two_runs_are_bit_identical(model, device):
    check_device(device, deterministic=True)
    assert numbers(model, device) == numbers(model, device)


def with_one_thread_and_two(train):
    """What ``train`` returns with one thread and with two, of PyTorch and of the linear algebra of NumPy."""
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with threadpool_limits(threads, "blas"):
                found.append(train())
    finally:
        torch.set_num_threads(before)
    return found


def same_up_to_rounding(one, two):
    losses = [[(epoch.train_loss, epoch.val_loss) for _, epoch in history] for history in (one, two)]
    return losses[0] == [pytest.approx(pair, abs=TOLERANCE) for pair in losses[1]]


@pytest.mark.parametrize("model", MODELS)
def test_small_runs_do_not_depend_on_the_number_of_threads(model):
    one, two = with_one_thread_and_two(lambda: numbers(model))
    assert one == two


@pytest.mark.parametrize("model", ["gcn", "asgat-plus"])
def test_in_larger_ones_it_changes_losses_by_rounding_only(model, monkeypatch):
    monkeypatch.setattr(lanes, "ONE_THREAD", 0)
    monkeypatch.setattr(lanes, "PER_THREAD", 1)
    assert same_up_to_rounding(*with_one_thread_and_two(lambda: numbers(model, epochs=10)[1]))


@pytest.mark.parametrize("recipe", [False, True], ids=["defaults", "recipe"])
@pytest.mark.parametrize("model", ["asgat-exact", "asgat-cheb"])
@pytest.mark.parametrize("name", ["texas", "wisconsin"])
def test_on_small_graphs_with_many_equal_scores_it_changes_nothing(name, model, recipe, real_data):
    data = load_dataset(name, data_dir=real_data)
    short = {"epochs": 10, "patience": 99, "max_restarts": 0}
    config = load_config(name, model, short) if recipe else make_config(model, **short)

    def train():
        history = []
        run(data, model, config, [0, 1], callbacks=Callbacks(progress=lambda i, epoch: history.append((i, epoch))))
        return history

    one, two = with_one_thread_and_two(train)
    assert len(one) == 20
    assert one == two


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


@pytest.mark.parametrize("command", ["train", "compare", "reproduce", "fit"])
def test_the_commands_that_train_have_the_option(command):
    from typer.main import get_command

    found = get_command(app).commands[command]  # type: ignore[attr-defined]
    assert "--deterministic" in [name for parameter in found.params for name in parameter.opts]
