import gc
import os
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from asgat.data import download
from asgat.data.download import address_of, checksums, data_directory, missing_files, read_files
from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile

# The sockets of broken downloads close when they are collected, which may be in the middle of any test here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def collected():
    """Sockets that are still there after a test are collected here, not in the middle of another file's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


NAME, CONTENT = "planetoid/ind.cora.y", b"what the file should hold"


@pytest.fixture
def expected(write_files, tmp_path):
    """The data directory, with the checksum of one file known and the file missing."""
    write_files({NAME: CONTENT})
    (tmp_path / NAME).unlink()
    (tmp_path / "planetoid").rmdir()
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    """A server on this machine that answers as its attribute ``answer`` says."""

    class Server(ThreadingHTTPServer):
        answer = 200, b"", 0
        asked: ClassVar[list[str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, content, length = instance.answer
            instance.asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    instance = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=instance.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setitem(download.BASE_ADDRESSES, "planetoid", f"http://127.0.0.1:{instance.server_port}/data")
    yield instance
    instance.shutdown()
    instance.server_close()
    thread.join()


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_downloads_what_is_missing_and_only_once(expected, server):
    server.answer = 200, CONTENT, len(CONTENT)
    assert missing_files([NAME], expected) == [NAME]
    assert read_files([NAME], expected)[NAME] == RawFile(expected / NAME, CONTENT)
    assert server.asked == ["/data/ind.cora.y"]
    assert missing_files([NAME], expected) == []
    read_files([NAME], expected)
    assert len(server.asked) == 1
    assert files_below(expected) == [expected / NAME]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b"", 0), "the server answered 404"),
        ((200, b"something else", 14), "the downloaded file is corrupt"),
        ((200, CONTENT[:5], len(CONTENT)), "it was interrupted"),
    ],
)
def test_failed_download_leaves_no_file(expected, server, answer, reason):
    server.answer = answer
    with pytest.raises(AsgatError, match=reason) as error:
        read_files([NAME], expected)
    assert f"Put the file at {expected / NAME}, or point ASGAT_DATA_DIR or --data-dir" in str(error.value)
    assert files_below(expected) == []


def test_offline(expected, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setitem(download.BASE_ADDRESSES, "planetoid", "http://127.0.0.1:9/data")
    with pytest.raises(AsgatError, match="no connection") as error:
        read_files([NAME], expected)
    assert f"Put the file at {expected / NAME}" in str(error.value)
    assert files_below(expected) == []


def test_all_missing_files_are_named(expected, write_files, server):
    write_files({NAME: CONTENT, "planetoid/b": b"b", "planetoid/c": b"c"})
    for path in files_below(expected):
        path.unlink()
    server.answer = 404, b"", 0
    with pytest.raises(AsgatError, match=r"Also missing there: planetoid/b, planetoid/c\."):
        read_files([NAME, "planetoid/b", "planetoid/c"], expected)


def test_directory_that_cannot_be_written(expected, server):
    (expected / "planetoid").write_text("a file where a folder is needed")
    with pytest.raises(AsgatError, match="Put the file at"):
        read_files([NAME], expected)
    assert server.asked == []


def test_read_only_directory(expected, server, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)  # permission bits would not stop root
    with pytest.raises(AsgatError, match="Permission denied") as error:
        read_files([NAME], expected)
    assert f"Put the file at {expected / NAME}" in str(error.value)


def test_corrupt_file(write_files):
    folder = write_files({NAME: CONTENT})
    (folder / NAME).write_bytes(CONTENT[:-1])
    with pytest.raises(AsgatError, match=r"ind\.cora\.y is corrupt: expected SHA-256 \w{64}, found \w{64}; delete"):
        read_files([NAME], folder)
    assert (folder / NAME).read_bytes() == CONTENT[:-1]


def test_files_that_are_not_regular_or_too_large(write_files, monkeypatch):
    folder = write_files({NAME: CONTENT})
    monkeypatch.setattr(download, "MAX_FILE_BYTES", 10)
    with pytest.raises(AsgatError, match="larger than"):
        read_files([NAME], folder)
    (folder / NAME).unlink()
    os.mkfifo(folder / NAME)
    with pytest.raises(AsgatError, match="not a regular file"):
        read_files([NAME], folder)


def test_data_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "a"))
    assert data_directory(tmp_path / "b") == tmp_path / "b"
    assert data_directory() == tmp_path / "a"
    monkeypatch.setenv("ASGAT_DATA_DIR", "")
    assert data_directory().name == "asgat"
    assert data_directory("~/x") == Path.home() / "x"


def test_every_checksum_has_an_https_address():
    assert len(checksums()) == 93
    for name, digest in checksums().items():
        assert len(bytes.fromhex(digest)) == 32
        assert address_of(name).startswith("https://raw.githubusercontent.com/")
    assert address_of(NAME).endswith("kimiyoung/planetoid/master/data/ind.cora.y")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "planetoid/../../secret", "planetoid/no.such.file"])
def test_names_without_a_checksum_are_never_opened(tmp_path, name):
    with pytest.raises(AsgatError, match="not a file this package knows the checksum of"):
        read_files([name], tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
