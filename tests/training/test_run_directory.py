import json
import os
import tomllib
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save_file

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.files.atomic import to_toml
from asgat.nn.registry import MODELS, make_config, model_spec
from asgat.training.inputs import make_inputs
from asgat.training.run_directory import (
    OtherSettingsError,
    RunDirectory,
    encode_model,
    load_model,
    load_models,
    read_metadata,
    sha256,
    with_partners,
)
from asgat.training.run_state import Epoch

SETTINGS = {"dataset": "karate", "seed": 0, "runs": [0, 1], "data": "abc", "config": {"lr": 0.01, "k": "none"}}
ROW = {"run": 0, "epochs": 3, "best_epoch": 2, "restarts": 0, "val_loss": 0.5, "val_score": 0.7}
ROW |= {"seconds": 1.0, "peak_memory_mb": 10.0, "micro_f1": 0.5, "macro_f1": 0.5}
HISTORY = [Epoch(0, 1, 1.0, 1.0, 0.5), Epoch(0, 2, 0.9, 1.0, 0.5)]


def row(run, val_score=0.7):
    return {**ROW, "run": run, "val_score": val_score}


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- settings ---------------------------------------------------------------------------------------


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


# -- the beginning ----------------------------------------------------------------------------------


def test_begin_writes_the_settings(tmp_path):
    assert RunDirectory(tmp_path / "new").begin(SETTINGS) == []
    assert tomllib.loads((tmp_path / "new" / "config.toml").read_text()) == SETTINGS


def test_begin_again_returns_the_finished_runs(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    assert directory.begin(SETTINGS) == []  # nothing was finished yet
    directory.write_result({"rows": [ROW]})
    assert directory.begin(SETTINGS) == [ROW]
    assert directory.read_result() == {"rows": [ROW], "model_sha256": None}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({**SETTINGS, "seed": 1}, r"other settings \(seed\)"),
        ({**SETTINGS, "config": {"lr": 0.1, "k": 3}}, r"other settings \(lr, k\)"),
        ({**SETTINGS, "config": {"lr": 0.01}}, r"other settings \(k\)"),
        ({**SETTINGS, "config": {**SETTINGS["config"], "order": 3}}, r"other settings \(order\)"),  # type: ignore[dict-item]
        ({**SETTINGS, "runs": [0, 1, 2]}, r"other settings \(runs\)"),
        ({**SETTINGS, "data": "other"}, r"other data: graph, features, labels or splits have changed"),
        ({**SETTINGS, "data": "other", "seed": 1}, r"other settings \(seed, data\)"),
    ],
)
def test_other_settings_are_named_and_nothing_is_touched(tmp_path, other, words):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    directory.write_result({"rows": [ROW]})
    before = files_in(tmp_path)
    with pytest.raises(OtherSettingsError, match=rf"{words}.*--out.*--fresh"):
        directory.begin(other)
    assert files_in(tmp_path) == before


def test_a_directory_without_digest_of_its_data_is_continued(tmp_path):
    """Version 0.1 did not write it."""
    RunDirectory(tmp_path).begin({key: value for key, value in SETTINGS.items() if key != "data"})
    assert RunDirectory(tmp_path).begin(SETTINGS) == []


def test_fresh_removes_the_earlier_runs(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    directory.add_run(row(0), HISTORY, [], {"w": torch.zeros(1)}, {"model": "mlp"})
    directory.write_result({"rows": [ROW]})
    (tmp_path / "unfinished.safetensors").write_bytes(b"")
    other = {**SETTINGS, "seed": 9}
    assert directory.begin(other, fresh=True) == []
    assert files_in(tmp_path).keys() == {"config.toml"}
    assert tomllib.loads((tmp_path / "config.toml").read_text()) == other


def test_a_folder_below_a_file_is_not_a_run_directory(tmp_path):
    (tmp_path / "file").write_text("")
    for fresh in (False, True):
        with pytest.raises(AsgatError, match="file"):
            RunDirectory(tmp_path / "file" / "run").begin(SETTINGS, fresh)


def test_files_of_someone_else_are_left_alone(tmp_path):
    (tmp_path / "result.json").write_text("theirs")
    with pytest.raises(AsgatError, match=r"result\.json but no config\.toml"):
        RunDirectory(tmp_path).begin(SETTINGS)
    assert (tmp_path / "result.json").read_text() == "theirs"
    assert RunDirectory(tmp_path).begin(SETTINGS, fresh=True) == []
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read as a result"),
        (b"{", "cannot be read as a result"),
        (b"\xff\xfe", "cannot be read as a result"),
        (b"[" * 100_000, "cannot be read as a result"),
        (b"[]", "is damaged: it must hold an object"),
        (b"{}", "is damaged: rows must be a list of objects"),
        (json.dumps({"rows": [ROW, ROW]}).encode(), r"is damaged: rows repeat a run \(\[0, 0\]\)"),
        (
            json.dumps({"rows": [{**ROW, "run": 7}]}).encode(),
            r"is damaged: it has a row of run 7, but the runs are \[0, 1\]",
        ),
    ],
)
def test_a_damaged_result_is_named(tmp_path, content, words):
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(AsgatError, match=rf"result\.json {words}"):
        directory.begin(SETTINGS)


# -- metrics ----------------------------------------------------------------------------------------


def test_metrics_of_runs_that_never_finished_are_dropped(tmp_path):
    directory = RunDirectory(tmp_path)
    state, metadata = {"w": torch.zeros(1)}, {"model": "mlp"}
    directory.add_run(row(0), HISTORY, [], state, metadata)
    directory.add_run(row(1), HISTORY[:1], [row(0)], state, metadata)  # killed before its result is written
    directory.add_run(row(1), HISTORY, [row(0)], state, metadata)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["run"], line["epoch"]) for line in lines] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert lines[0] == {"run": 0, **vars(HISTORY[0])}


@pytest.mark.parametrize("content", [b"{\n", b"[]\n", b'{"epoch": 1}\n', b"\xff"])
def test_bad_metrics_are_named_and_left(tmp_path, content):
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(AsgatError, match=r"metrics\.jsonl.*--fresh"):
        RunDirectory(tmp_path).add_run(ROW, HISTORY, [], {}, {})
    assert (tmp_path / "metrics.jsonl").read_bytes() == content


def test_the_model_is_that_of_the_best_run_on_validation(tmp_path):
    directory = RunDirectory(tmp_path)
    done: list[dict[str, Any]] = []
    for run, val_score, best in [(3, 0.5, 3), (4, 0.9, 4), (5, 0.7, 4), (6, 0.9, 4), (1, 0.9, 1)]:
        directory.add_run(row(run, val_score), [], done, {"w": torch.zeros(1)}, {"run": run})
        done.append(row(run, val_score))
        assert read_metadata(tmp_path)["run"] == best  # among equals the first run, whichever ended first


# -- the model --------------------------------------------------------------------------------------


def model_file(name="mlp", in_channels=34, run=0, seed=0, **settings):
    """A model, its settings and the content of its file."""
    config = make_config(name, hidden=4, **settings)
    torch.manual_seed(seed)
    model = model_spec(name).make(config, in_channels, 2, 34)
    shape = {"in_channels": in_channels, "out_channels": 2, "num_nodes": 34}
    return (
        model,
        config,
        encode_model(model.state_dict(), {"model": name, "config": config.to_dict(), "run": run, **shape}),
    )


def save_model(folder, *args, **settings):
    model, config, content = model_file(*args, **settings)
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(content)
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


def test_settings_that_shape_the_model_are_saved_with_it(tmp_path):
    settings = {"heads": 3, "layers": 3, "filter_hidden": [5], "out_heads": 2, "k": None}
    model, config = save_model(tmp_path, "asgat-plus", **settings)
    loaded, _, loaded_config = load_model(tmp_path)
    assert loaded_config == config
    assert {k: v.shape for k, v in loaded.state_dict().items()} == {k: v.shape for k, v in model.state_dict().items()}


def test_the_file_is_plain_safetensors(tmp_path):
    model, config = save_model(tmp_path)
    with safe_open(str(tmp_path / "model.safetensors"), framework="pt") as file:
        metadata = {key: json.loads(text) for key, text in file.metadata().items()}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is not a dict
    shape = {"in_channels": 34, "out_channels": 2, "num_nodes": 34}
    assert metadata == read_metadata(tmp_path) == {"model": "mlp", "config": config.to_dict(), "run": 0, **shape}
    assert tensors.keys() == model.state_dict().keys()
    assert all(torch.equal(tensors[key], value) for key, value in model.state_dict().items())


@pytest.fixture
def averaged(tmp_path):
    """A run directory of a model and two partners; returns their networks."""
    sizes = {"in_channels": 34, "out_channels": 2, "num_nodes": 34}
    names, found = ("gcn", "linkx", "mlp"), []
    for name in names:
        config = make_config(name, hidden=4)
        found.append((name, config, model_spec(name).make(config, 34, 2, 34)))
    first, *partners = [(name, config, model.state_dict()) for name, config, model in found]
    state, told = with_partners(first[2], partners)
    metadata = {"model": "gcn", "config": first[1].to_dict(), "run": 0, **sizes, **told}
    (tmp_path / "model.safetensors").write_bytes(encode_model(state, metadata))
    return state, metadata, [model for _, _, model in found]


def test_models_that_are_averaged_are_in_one_file(tmp_path, averaged):
    held = load_models(tmp_path)
    assert [name for _, name, _ in held] == ["gcn", "linkx", "mlp"]
    for (model, _, _), expected in zip(held, averaged[2], strict=True):
        assert all(torch.equal(value, expected.state_dict()[key]) for key, value in model.state_dict().items())
    with pytest.raises(AsgatError, match=r"the average of several models \(gcn, linkx, mlp\), and one is needed"):
        load_model(tmp_path)
    assert with_partners({"w": torch.zeros(1)}, [])[1] == {}


@pytest.mark.parametrize(
    "partners", [None, 3, [3], [{"model": "linkx"}], [{"model": "mlp", "config": {"hidden": 4}}], []]
)
def test_partners_that_do_not_fit_their_weights_are_named(tmp_path, averaged, partners):
    state, metadata, _ = averaged
    (tmp_path / "model.safetensors").write_bytes(encode_model(state, {**metadata, "partners": partners}))
    with pytest.raises(AsgatError, match=NOT_A_MODEL):
        load_models(tmp_path)


NOT_A_MODEL = r"model\.safetensors is not a model of this package"


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, -1])
def test_a_cut_off_model_is_named(tmp_path, keep):
    (tmp_path / "model.safetensors").write_bytes(model_file()[2][:keep])
    with pytest.raises(AsgatError, match=NOT_A_MODEL):
        load_model(tmp_path)


@pytest.mark.parametrize("content", [b"garbage" * 100, b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}", None, "a folder"])
def test_a_file_that_is_not_a_model_is_named(tmp_path, content):
    if isinstance(content, bytes):
        (tmp_path / "model.safetensors").write_bytes(content)
    elif content:
        (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(AsgatError, match=NOT_A_MODEL):
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
        {**GOOD, "config": {"layers": 10**9}},
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
    with pytest.raises(AsgatError, match=NOT_A_MODEL):
        load_model(tmp_path)


def test_metadata_of_another_program_and_weights_of_nan_are_named(tmp_path):
    save_file({"w": torch.zeros(2)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AsgatError, match=NOT_A_MODEL):
        load_model(tmp_path)
    model, config = save_model(tmp_path)
    state = {name: torch.full_like(value, float("nan")) for name, value in model.state_dict().items()}
    metadata = {k: json.dumps(v) for k, v in {**GOOD, "config": config.to_dict()}.items()}
    save_file(state, tmp_path / "model.safetensors", metadata=metadata)
    with pytest.raises(AsgatError, match="infinite or not a number"):
        load_model(tmp_path)


# -- the model belongs to the result ----------------------------------------------------------------


def finished(folder, *scores, of=2):
    """A run directory with some of its runs finished; run i has the model of seed i."""
    directory = RunDirectory(folder)
    done: list[dict[str, Any]] = []
    directory.begin({**SETTINGS, "runs": list(range(of))})
    for run, val_score in enumerate(scores):
        model, config, _ = model_file(seed=run)
        metadata = {**GOOD, "config": config.to_dict(), "run": run}
        directory.add_run(row(run, val_score), HISTORY, done, model.state_dict(), metadata)
        done.append(row(run, val_score))
        directory.write_result({"rows": list(done), "finished": len(done) == of})
    return directory


def test_the_result_names_the_model_and_another_runs_model_is_refused(tmp_path):
    finished(tmp_path / "one", 0.5, 0.9)
    finished(tmp_path / "two", 0.9, 0.5)
    for name in ("one", "two"):
        content = (tmp_path / name / "model.safetensors").read_bytes()
        assert json.loads((tmp_path / name / "result.json").read_text())["model_sha256"] == sha256(content)
        load_model(tmp_path / name)
    (tmp_path / "one/model.safetensors").write_bytes((tmp_path / "two/model.safetensors").read_bytes())
    with pytest.raises(AsgatError, match=r"not the model that result\.json was written with.*--fresh"):
        load_model(tmp_path / "one")


def test_a_result_of_version_0_1_says_nothing_about_the_model(tmp_path):
    finished(tmp_path, 0.5, 0.9)
    result = json.loads((tmp_path / "result.json").read_text())
    del result["model_sha256"]
    (tmp_path / "result.json").write_text(json.dumps(result))
    load_model(tmp_path)
    content = (tmp_path / "model.safetensors").read_bytes()
    directory = RunDirectory(tmp_path)
    directory.begin(SETTINGS)
    directory.write_result(result)
    assert directory.read_result()["model_sha256"] == sha256(content), "a run that is continued is given it"


def test_a_model_whose_run_was_killed_before_its_result_is_accepted(tmp_path):
    finished(tmp_path, 0.5, of=3)
    before = (tmp_path / "result.json").read_bytes()
    finished(tmp_path / "later", 0.5, 0.9, of=3)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "later/model.safetensors").read_bytes())
    assert read_metadata(tmp_path)["run"] == 1
    load_model(tmp_path)
    (tmp_path / "result.json").write_bytes(before.replace(b'"finished": false', b'"finished": true'))
    with pytest.raises(AsgatError, match="not the model that"):
        load_model(tmp_path)


def test_a_model_exchanged_between_kill_and_restart_is_still_refused(tmp_path):
    finished(tmp_path, 0.9, of=2)
    finished(tmp_path / "other", 0.5, 0.9)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "other/model.safetensors").read_bytes())
    directory = RunDirectory(tmp_path)
    done = directory.begin(SETTINGS)
    model, _, _ = model_file(seed=1)
    directory.add_run(row(1, 0.3), [], done, model.state_dict(), {"run": 1})
    directory.write_result({"rows": [*done, row(1, 0.3)], "finished": True})
    with pytest.raises(AsgatError, match="not the model that"):
        load_model(tmp_path)


@pytest.mark.parametrize("renames", range(6))
def test_a_run_that_is_replaced_is_whole_or_has_no_result(tmp_path, monkeypatch, renames):
    """Killed after any of the renames: what the folder holds is not taken for a finished run with another's files."""
    model, config, _ = model_file(seed=5)
    metadata = {**GOOD, "config": config.to_dict(), "run": 0}
    settings = {**SETTINGS, "runs": [0]}
    new = (settings, HISTORY, model.state_dict(), metadata, {"rows": [ROW], "finished": True}, {"graph.npz": b"new"})
    finished(tmp_path, 0.5, of=1)
    (tmp_path / "unfinished.safetensors").write_bytes(b"stale")
    replace, left = os.replace, [renames]

    def rename(*args):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        replace(*args)

    monkeypatch.setattr(os, "replace", rename)
    if renames < 5:
        with pytest.raises(KeyboardInterrupt):
            RunDirectory(tmp_path).replace(*new)
        assert not (tmp_path / "result.json").exists()
        assert (tmp_path / "unfinished.safetensors").exists()
    else:
        RunDirectory(tmp_path).replace(*new)
        found = files_in(tmp_path)
        assert found.keys() == {"config.toml", "metrics.jsonl", "model.safetensors", "result.json", "graph.npz"}
        assert json.loads(found["result.json"])["model_sha256"] == sha256(found["model.safetensors"])
    load_model(tmp_path)


def test_equal_models_give_equal_bytes_that_safetensors_reads():
    state = {name: torch.full((3, 2), float(i)) for i, name in enumerate("abcdefgh")}
    metadata = {f"key {i}": i for i in range(20)}
    content = encode_model(state, metadata)
    assert all(encode_model(dict(reversed(state.items())), metadata) == content for _ in range(5))
    assert all(torch.equal(value, state[name]) for name, value in load(content).items())
