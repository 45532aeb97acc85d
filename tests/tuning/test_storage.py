import sqlite3
import sys
from importlib import import_module

import pytest

pytest.importorskip("optuna")
from asgat.errors import AsgatError
from asgat.tuning.storage import file_url, open_storage, optuna, storage_errors


def remember(url, value):
    study = optuna.create_study(storage=open_storage(url), study_name="a", load_if_exists=True)
    study.add_trial(optuna.trial.create_trial(value=value))
    return [trial.value for trial in study.trials]


def test_a_file_keeps_trials_whatever_characters_its_path_has(tmp_path):
    path = tmp_path / "50 % {of} a?b#c ä.db"
    assert remember(file_url(path), 1.0) == [1.0]
    assert remember(file_url(path), 2.0) == [1.0, 2.0]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nosuch://there", r"--storage nosuch://… is not a URL of a database that Optuna can use, for example sqlite:"),
        ("runs/journal.log", "--storage runs/journal.log is not a URL"),
        ("postgresql://me:secret@there:x/y", r"--storage postgresql://… is not a URL"),
        ("sqlite:///{name}.db", "is not a URL"),
        ("sqlite:////nosuch/folder/a.db", "cannot be used: unable to open database file. Choose another --storage"),
        ("mysql+nosuch://me@there/y", "is not a URL"),
        ("oracle+cx_oracle://me@there/y", "needs the package cx_Oracle, which is not installed"),
    ],
)
def test_a_url_that_cannot_be_used_is_a_sentence(url, words):
    with pytest.raises(AsgatError, match=words):
        open_storage(url)


def test_another_file_is_a_sentence_and_is_kept(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 200)
    with pytest.raises(AsgatError, match="cannot be used: file is not a database"):
        open_storage(file_url(path))
    assert path.read_text() == "hello " * 200


def test_a_database_that_is_damaged_meanwhile_is_a_sentence(tmp_path):
    storage = open_storage(file_url(tmp_path / "a.db"))
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("DROP TABLE studies")
    with pytest.raises(AsgatError, match="The storage of the study cannot be used: no such table"), storage_errors():
        optuna.create_study(storage=storage)


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "asgat.tuning.storage")
    with pytest.raises(AsgatError, match=r"pip install 'asgat\[tune\]'"):
        import_module("asgat.tuning.storage")
