import json
import tomllib

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.files.atomic import to_toml
from asgat.nn.registry import MODELS, make_config, model_spec
from asgat.training.run_directory import RunDirectory, load_model
from asgat.training.runner import make_inputs

SETTINGS = {"dataset": "karate", "seed": 0, "runs": [0, 1], "config": {"lr": 0.01, "k": "none"}}


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


# -- settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_settings_survive_toml(name):
    config = make_config(name)
    read = tomllib.loads(to_toml({"config": config.to_dict()}))["config"]
    assert make_config(name, **read) == config


def test_none_survives_toml():
    config = make_config("asgat-cheb", k=None, filter_hidden=[3], dropout=0)
    read = tomllib.loads(to_toml({"config": config.to_dict()}))["config"]
    assert read["k"] == "none"
    assert make_config("asgat-cheb", **read) == config


# -- beginning and taking over ----------------------------------------------------------------------


def test_begin_writes_the_settings(tmp_path):
    assert RunDirectory(tmp_path / "new").begin(SETTINGS) == []
    assert tomllib.loads((tmp_path / "new" / "config.toml").read_text()) == SETTINGS


def test_begin_again_returns_the_finished_runs(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    assert directory.begin(SETTINGS) == []  # nothing was finished yet
    rows = [{"run": 0, "micro_f1": 0.5}]
    directory.write_result({"rows": rows})
    assert directory.begin(SETTINGS) == rows
    assert directory.read_result() == {"rows": rows}


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({**SETTINGS, "seed": 1}, ["seed"]),
        ({**SETTINGS, "config": {"lr": 0.1, "k": 3}}, ["lr", "k"]),
        ({**SETTINGS, "config": {"lr": 0.01}}, ["k"]),
        ({**SETTINGS, "config": {**SETTINGS["config"], "order": 3}}, ["order"]),  # type: ignore[dict-item]
        ({**SETTINGS, "runs": [0, 1, 2]}, ["runs"]),
    ],
)
def test_other_settings_are_named_and_nothing_is_touched(tmp_path, other, named):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    directory.write_result({"rows": [{"run": 0}]})
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    with pytest.raises(AsgatError, match=rf"other settings \({', '.join(named)}\).*--out.*--fresh"):
        directory.begin(other)
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before


def test_fresh_forgets_the_earlier_runs(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    directory.write_result({"rows": [{"run": 0}]})
    directory.add_metrics([{"run": 0, "epoch": 1}], [])
    directory.write_model({"w": torch.zeros(1)}, {"model": "mlp"})
    other = {**SETTINGS, "seed": 9}
    assert directory.begin(other, fresh=True) == []
    assert files_in(tmp_path) == ["config.toml"]
    assert tomllib.loads((tmp_path / "config.toml").read_text()) == other


def test_a_place_below_a_file_is_no_run_directory(tmp_path):
    (tmp_path / "file").write_text("")
    for fresh in (False, True):
        with pytest.raises(AsgatError, match="file"):
            RunDirectory(tmp_path / "file" / "run").begin(SETTINGS, fresh)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"rows":'])
def test_a_bad_result_is_named(tmp_path, content):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(AsgatError, match=r"result\.json cannot be read"):
        directory.begin(SETTINGS)


def test_metrics_of_unfinished_runs_are_dropped(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.add_metrics([{"run": 0, "epoch": 1}, {"run": 0, "epoch": 2}], [])
    directory.add_metrics([{"run": 1, "epoch": 1}], [0])  # run 1 is then killed before its result is written
    directory.add_metrics([{"run": 1, "epoch": 1}, {"run": 1, "epoch": 2}], [0])
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["run"], line["epoch"]) for line in lines] == [(0, 1), (0, 2), (1, 1), (1, 2)]


@pytest.mark.parametrize("content", [b"{\n", b"[]\n", b'{"epoch": 1}\n', b"\xff"])
def test_bad_metrics_are_named_and_left(tmp_path, content):
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(AsgatError, match=r"metrics\.jsonl.*--fresh"):
        RunDirectory(tmp_path).add_metrics([{"run": 0}], [])
    assert (tmp_path / "metrics.jsonl").read_bytes() == content


# -- the model --------------------------------------------------------------------------------------


def save_model(folder, name="mlp", in_channels=34, **settings):
    config = make_config(name, hidden=4, **settings)
    model = model_spec(name).make(config, in_channels, 2, 34)
    shape = {"in_channels": in_channels, "out_channels": 2, "num_nodes": 34}
    metadata = {"model": name, "config": config.to_dict(), **shape}
    RunDirectory(folder).write_model(model.state_dict(), metadata)
    return model, config


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_same_logits(tmp_path, name):
    karate = load_dataset("karate")
    model, config = save_model(tmp_path, name)
    loaded, loaded_name, loaded_config = load_model(tmp_path)
    assert (loaded_name, loaded_config) == (name, config)
    assert not loaded.training
    inputs = make_inputs(karate, name, config, torch.device("cpu"))
    with torch.no_grad():
        assert torch.equal(loaded(*inputs), model.eval()(*inputs))


def test_settings_that_shape_the_model_travel_with_it(tmp_path):
    settings = {"heads": 3, "layers": 3, "filter_hidden": [5], "out_heads": 2, "k": None}
    model, config = save_model(tmp_path, "asgat-plus", **settings)
    loaded, _, loaded_config = load_model(tmp_path)
    assert loaded_config == config
    assert {k: v.shape for k, v in loaded.state_dict().items()} == {k: v.shape for k, v in model.state_dict().items()}


def test_the_file_is_plain_safetensors(tmp_path):
    model, config = save_model(tmp_path)
    with safe_open(str(tmp_path / "model.safetensors"), framework="pt") as file:
        metadata = {key: json.loads(text) for key, text in file.metadata().items()}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is no dict
    shape = {"in_channels": 34, "out_channels": 2, "num_nodes": 34}
    assert metadata == {"model": "mlp", "config": config.to_dict(), **shape}
    assert tensors.keys() == model.state_dict().keys()
    assert all(torch.equal(tensors[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, -1])
def test_a_cut_off_model_is_named(tmp_path, keep):
    save_model(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(AsgatError, match=r"model\.safetensors holds no model"):
        load_model(tmp_path)


@pytest.mark.parametrize("content", [b"garbage" * 100, b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}", b"PK\x03\x04" * 9])
def test_a_foreign_file_is_named(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(AsgatError, match=r"model\.safetensors holds no model"):
        load_model(tmp_path)


def test_no_model_at_all_is_named(tmp_path):
    with pytest.raises(AsgatError, match=r"nowhere.model\.safetensors holds no model"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(AsgatError, match=r"model\.safetensors holds no model"):
        load_model(tmp_path)


GOOD = {"model": "mlp", "config": {"hidden": 4}, "in_channels": 34, "out_channels": 2}


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {**GOOD, "model": "nonsense"},
        {**GOOD, "model": ["mlp"]},
        {**GOOD, "model": "gcn"},
        {**GOOD, "config": {"hidden": 5}},
        {**GOOD, "config": {"no_such_key": 5}},
        {**GOOD, "config": {"hidden": "four"}},
        {**GOOD, "config": None},
        {**GOOD, "in_channels": 3},
        {**GOOD, "in_channels": "34"},
        {**GOOD, "in_channels": -1},
        {k: v for k, v in GOOD.items() if k != "out_channels"},
    ],
)
def test_a_model_of_another_kind_is_named(tmp_path, metadata):
    save_model(tmp_path / "right")
    state = load_model(tmp_path / "right")[0].state_dict()
    text = None if metadata is None else {k: json.dumps(v) for k, v in metadata.items()}
    save_file(state, tmp_path / "model.safetensors", metadata=text)
    with pytest.raises(AsgatError, match=r"model\.safetensors holds no model"):
        load_model(tmp_path)


def test_metadata_of_another_program_is_named(tmp_path):
    save_file({"w": torch.zeros(2)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AsgatError, match="holds no model of this package"):
        load_model(tmp_path)


def test_files_of_someone_else_are_left_alone(tmp_path):
    (tmp_path / "result.json").write_text("theirs")
    with pytest.raises(AsgatError, match=r"result\.json but no config\.toml"):
        RunDirectory(tmp_path).begin({"dataset": "karate"})
    assert (tmp_path / "result.json").read_text() == "theirs"
    assert RunDirectory(tmp_path).begin({"dataset": "karate"}, fresh=True) == []
    assert not (tmp_path / "result.json").exists()
