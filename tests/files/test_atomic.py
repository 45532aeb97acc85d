import json
import os
import stat
import tomllib
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.files.atomic import read_toml, to_json, to_toml, write_atomic

KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True)
PLAIN = st.one_of(
    st.text(max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.integers(-9, 99), max_size=4),
)
TABLES = st.dictionaries(KEYS, st.one_of(PLAIN, st.dictionaries(KEYS, PLAIN, max_size=4)), max_size=5)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_write_atomic_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert files_in(path.parent) == ["file"]


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, failure):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises((AsgatError, KeyboardInterrupt)) as caught:
        write_atomic(path, b"new")
    if isinstance(failure, OSError):
        assert caught.type is AsgatError
        assert str(path) in str(caught.value)
        assert "No space left" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert files_in(tmp_path) == ["file"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "below", tmp_path / "file" / "far" / "below", tmp_path / "folder"):
        with pytest.raises(AsgatError, match="cannot be written") as caught:
            write_atomic(path, b"x")
        assert str(path) in str(caught.value)
    assert files_in(tmp_path) == ["file", "folder"]
    assert files_in(tmp_path / "folder") == []


def test_a_pipe_or_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AsgatError, match=r"pipe cannot be written: it is not a regular file\. Choose another place"):
        write_atomic(tmp_path / "pipe", b"x")
    assert (tmp_path / "pipe").is_fifo()
    assert files_in(tmp_path) == ["pipe"]


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


# -- plain formats ----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(TABLES)
@example({"name": 'quotes " and \\ and \n', "letters": "λ≤2 \U0001f600 \x7f \x00 \u2028"})
@example({"config": {}, "empty": "", "list": [], "large": 1e300, "small": 5e-324})
def test_toml_is_read_back_as_it_was(values):
    assert tomllib.loads(to_toml(values)) == values


@settings(deadline=None, max_examples=15)
@given(TABLES)
def test_toml_files_are_read_back_as_they_were(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    write_atomic(path, to_toml(values).encode())
    assert read_toml(path) == values


def test_json_keeps_letters_and_numbers():
    assert json.loads(to_json({"λ": [1, None, 0.1]})) == {"λ": [1, None, 0.1]}


@pytest.mark.parametrize("content", [b"no toml", b"a = \xff", b"a = 1\na = 2"])
def test_bad_toml_is_named(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(AsgatError, match=r"config\.toml"):
        read_toml(tmp_path / "config.toml")


def test_numbers_json_has_no_word_for_become_null():
    values = {"a": [1.5, float("nan")], "b": {"c": float("inf"), "d": True, "e": "text", "f": None}}
    assert json.loads(to_json(values)) == {"a": [1.5, None], "b": {"c": None, "d": True, "e": "text", "f": None}}


@pytest.mark.parametrize("key", ["a", '"a"', "'a b'", "a "])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_keys_of_many_parts_are_refused(tmp_path, key, form):
    """tomllib alone takes 9.5 GiB for a key of 100,000 parts."""
    path = tmp_path / "config.toml"
    path.write_text(form.format(".".join([key] * 30)))
    read_toml(path)
    path.write_text(form.format(".".join([key] * 5000)))
    tracemalloc.start()
    with pytest.raises(AsgatError, match="a key has more than 32 parts"):
        read_toml(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_long_words_without_a_dot_are_searched_quickly(tmp_path):
    (tmp_path / "config.toml").write_text("a = 'b'\n" + "c" * 1_000_000)
    with pytest.raises(AsgatError, match="cannot be read as TOML"):
        read_toml(tmp_path / "config.toml")


def test_a_toml_file_is_a_regular_file_of_bounded_size(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("a = 1\n" * 200_000)
    with pytest.raises(AsgatError, match="larger than 1 MiB"):
        read_toml(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(AsgatError, match="not a regular file"):
        read_toml(path)
