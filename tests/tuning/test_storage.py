from pathlib import Path

import pytest

from asgat.errors import AsgatError
from asgat.tuning import storage
from asgat.tuning.storage import import_optuna, open_storage, workers_folder

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
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(storage, "import_module", missing)
    with pytest.raises(AsgatError, match=r"pip install 'asgat\[tune\]'"):
        import_optuna()
