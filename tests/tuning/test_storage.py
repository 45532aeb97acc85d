import errno
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tuning.storage import Journal, open_storage, workers_folder

optuna = pytest.importorskip("optuna")


def remember(place, value):
    study = optuna.create_study(storage=open_storage(place), study_name="a", load_if_exists=True)
    study.add_trial(optuna.trial.create_trial(value=value))
    return [t.value for t in optuna.load_study(storage=open_storage(place), study_name="a").trials]


def test_a_journal_file_and_a_database_keep_trials(tmp_path):
    for place in (str(tmp_path / "new" / "journal.log"), f"sqlite:///{tmp_path}/a.db"):
        assert remember(place, 1.0) == [1.0]
        assert remember(place, 2.0) == [1.0, 2.0]


def test_postgresql_is_reached_by_its_plain_url(postgres):
    assert remember(postgres, 1.0) == [1.0]
    assert remember(postgres.replace("postgresql", "postgres", 1), 2.0) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "The database of --storage cannot be reached"),
        ("nosuch://there", "not a supported database; use postgresql://"),
        ("postgresql://a:b:c@@:x/y", "not a supported database|cannot be reached"),
    ],
)
def test_unusable_databases_are_an_error(place, words):
    with pytest.raises(AsgatError, match=words):
        open_storage(place)


def test_a_file_that_is_not_a_journal_is_an_error(tmp_path):
    (tmp_path / "notes").write_text("hello\n")
    with pytest.raises(AsgatError, match="is not a journal of a search"):
        open_storage(str(tmp_path / "notes"))
    with pytest.raises(AsgatError, match="cannot be written"):
        open_storage(str(tmp_path / "notes" / "below"))


@pytest.mark.parametrize("line", ['{"op_code":99}', '{"op_code":4,"trial_id":7}', "[]", '{"op_code":'])
def test_a_journal_with_an_invalid_line_is_an_error(tmp_path, line):
    place = tmp_path / "journal"
    remember(str(place), 1.0)
    lines = place.read_text().splitlines()
    place.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(AsgatError, match="is not a journal of a search"):
        open_storage(str(place))


def test_foreign_text_is_kept_and_half_a_first_line_is_replaced(tmp_path):
    (tmp_path / "notes").write_text('{"mine": 1}')
    with pytest.raises(AsgatError, match="is not a journal of a search"):
        open_storage(str(tmp_path / "notes"))
    assert (tmp_path / "notes").read_text() == '{"mine": 1}'
    for half in ("", '{"op', '{"op_code":0,"wor'):
        (tmp_path / "journal").write_text(half)
        assert remember(str(tmp_path / "journal"), 1.0) == [1.0]


def test_the_workers_of_a_journal_have_a_folder_next_to_it():
    assert workers_folder("runs/journal.log") == Path("runs/journal.log.workers")
    assert workers_folder("postgresql://there/it") is None


def test_missing_packages_are_named_with_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "asgat.tuning.storage")
    with pytest.raises(AsgatError, match=r"pip install 'asgat\[tune\]'"):
        import_module("asgat.tuning.storage")


LINES = [{"op_code": i, "text": "x" * i} for i in range(5)]


def read(journal):
    return list(journal.read_logs(0))


@given(st.integers(0, 200))
def test_half_a_line_is_cut_off_before_the_next_one(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("journal") / "j"
    Journal(path).append_logs(LINES)
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    lines = whole[:length].count(b"\n")
    assert read(Journal(path)) == LINES[:lines]
    Journal(path).append_logs([{"op_code": 9}])
    assert read(Journal(path)) == [*LINES[:lines], {"op_code": 9}]


def test_half_a_line_longer_than_a_block(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.append_logs([{"op_code": 1}])
    with (tmp_path / "j").open("ab") as file:
        file.write(b"x" * 200_000)
    journal.append_logs([{"op_code": 2}])
    assert [json.loads(line)["op_code"] for line in (tmp_path / "j").read_text().splitlines()] == [1, 2]


def test_a_full_disk_is_an_error_and_adds_nothing(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j")
    journal.append_logs(LINES)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(AsgatError, match=r"No space left on device\. Free some space"):
            journal.append_logs([{"op_code": 7}])
    assert read(Journal(tmp_path / "j")) == LINES
    journal.append_logs([{"op_code": 8}])
    assert read(Journal(tmp_path / "j")) == [*LINES, {"op_code": 8}]
