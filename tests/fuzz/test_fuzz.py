"""The short version of ``python -m tests.fuzz.run``, and malicious files."""

import io
import json
import os
import struct
import time
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest
from tests.fuzz import check as checks
from tests.fuzz.check import Violation, check, check_mutant, memory_mb, write_files
from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS, Target

from asgat.errors import AsgatError

MUTANTS = 40  # of each reader; the script tries thousands


@pytest.fixture
def sound(tmp_path):
    """A function that writes a reader's files and has read them once."""

    def write(name):
        files = write_files(name, tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[name].read(tmp_path)
        return files

    return write


@pytest.mark.parametrize("name", TARGETS)
def test_spoiled_files_are_read_or_refused_and_nothing_else(name, sound, tmp_path):
    files = sound(name)
    taken = sum(check_mutant(name, 10**6 + number, tmp_path, files) for number in range(MUTANTS))
    assert taken < MUTANTS, "no mutant was refused: it is not the files that are looked at"
    for file, content in files.items():
        assert (tmp_path / file).read_bytes() == content, "the folder is whole again"
    assert check(name, tmp_path)


def test_every_way_of_spoiling_is_deterministic_and_changes_something():
    import random

    for name, target in TARGETS.items():
        for content in target.make().values():
            made = [mutate(content, random.Random(f"{name} {i}")) for i in range(20)]
            assert made == [mutate(content, random.Random(f"{name} {i}")) for i in range(20)]
            assert not content or sum(other != content for other in made) > 10


# -- the check itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (lambda folder: os.system("true"), "os.system"),
        (lambda folder: 1 // 0, "ZeroDivisionError"),
        (lambda folder: (folder.parent / "elsewhere").write_text("x"), "for writing"),
        (lambda folder: warnings.warn("x", stacklevel=1), "UserWarning"),
        (lambda folder: np.load(io.BytesIO(b"\x80\x04cos\nsystem\n."), allow_pickle=True), "pickle.find_class"),
    ],
)
def test_the_check_sees_what_must_not_happen(deed, words, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.setitem(TARGETS, "bad", Target(dict, deed))
    with pytest.raises(Violation, match=words):
        check("bad", tmp_path / "in")


@pytest.mark.parametrize(
    ("limit", "deed", "words"),
    [
        ("MAX_SECONDS", lambda folder: sum(range(10**6)), "it took"),
        ("MAX_SECONDS", lambda folder: time.sleep(0.05), "it took"),
        ("MAX_MEMORY_MB", lambda folder: np.ones(int(memory_mb()) << 17), "MB"),
    ],
)
def test_the_check_sees_what_takes_too_much(limit, deed, words, tmp_path, monkeypatch):
    monkeypatch.setitem(TARGETS, "bad", Target(dict, deed))
    monkeypatch.setattr(checks, limit, 1e-3)
    with pytest.raises(Violation, match=words):
        check("bad", tmp_path)


def test_the_check_wants_one_sentence(tmp_path, monkeypatch):
    def deed(folder):
        raise AsgatError("two\nlines")

    monkeypatch.setitem(TARGETS, "bad", Target(dict, deed))
    with pytest.raises(Violation, match="not one sentence"):
        check("bad", tmp_path)


# -- malicious files -------------------------------------------------------------------------------------------------


def refused(name, folder, file, content):
    (folder / file).write_bytes(content)
    assert not check(name, folder), "it was taken"


@pytest.mark.parametrize("part", ["graph", "allx", "y"])
def test_a_pickle_that_calls_the_system(part, sound, tmp_path):
    sound("planetoid")
    mark = tmp_path / "ran"
    command = f"touch {mark}".encode()
    attack = b"\x80\x02cos\nsystem\nX" + struct.pack("<I", len(command)) + command + b"\x85R."
    refused("planetoid", tmp_path, f"planetoid/ind.cora.{part}", attack)
    short = b"\x80\x02cposix\nsystem\nU" + bytes([len(command)]) + command + b"\x85R."
    refused("planetoid", tmp_path, f"planetoid/ind.cora.{part}", short)
    assert not mark.exists()


class Trap:
    def __reduce__(self):
        return os.system, ("exit 1",)


def npz_of_objects():
    stream = io.BytesIO()
    hostile: dict[str, Any] = {name: np.array([Trap()], dtype=object) for name in ("edge_index", "x", "position", "y")}
    np.savez(stream, **hostile)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("heterophilous", "heterophilous-graphs/data/minesweeper.npz"),
        ("npz", "g.npz"),
        ("edge lists", "e.npz"),
        ("run directory", "graph.npz"),
    ],
)
def test_object_arrays_are_not_opened(name, file, sound, tmp_path):
    sound(name)
    refused(name, tmp_path, file, npz_of_objects())


@pytest.mark.parametrize(
    ("name", "file"), [("edge lists", "e.npy"), ("arrays", "x.npy"), ("graph on disk", "features.npy")]
)
def test_an_object_array_of_its_own_is_not_opened(name, file, sound, tmp_path):
    sound(name)
    stream = io.BytesIO()
    np.save(stream, np.array([Trap()], dtype=object))
    refused(name, tmp_path, file, stream.getvalue())


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml/>',
        '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml><graph><node id="&x;"/></graph></graphml>',
        '<!DOCTYPE g [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;]><graphml/>',
        '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><graphml>&b;</graphml>',
    ],
)
def test_graphml_reaches_for_nothing_outside(document, sound, tmp_path):
    sound("graphml")
    refused("graphml", tmp_path, "g.graphml", document.encode())


def bomb(size):
    stream = io.BytesIO()
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("edge_index", "edges", "node_features", "position"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(head.getvalue())
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))
    return stream.getvalue()


def test_a_zip_bomb_is_not_unpacked(sound, tmp_path):
    name, file = "heterophilous", "heterophilous-graphs/data/minesweeper.npz"
    sound(name)
    content, before = bomb(80 << 20), memory_mb()
    assert len(content) < 2 << 20
    refused(name, tmp_path, file, content)
    assert memory_mb() - before < 64


@pytest.mark.parametrize(("name", "file"), [("npz", "g.npz"), ("edge lists", "e.npz")])
def test_a_small_archive_of_the_users_does_not_take_all_memory(name, file, sound, tmp_path):
    """An archive of 1.9 MB took 5.8 GiB."""
    sound(name)
    content, before = bomb(112 << 20), memory_mb()
    assert len(content) < 2 << 20
    refused(name, tmp_path, file, content)
    assert memory_mb() - before < 64


@pytest.mark.parametrize(("name", "file"), [("npz", "g.npz"), ("run directory", "graph.npz")])
def test_a_small_archive_of_very_many_edges_is_refused(name, file, sound, tmp_path):
    """One of 29 kB with 15 million edges took 2.2 GiB."""
    held = dict(np.load(io.BytesIO(sound(name)[file])))
    ends = "edges" if "edges" in held else "edge_index"
    held |= {ends: np.zeros((2, 15_000_000), np.uint8), "weight": np.ones(15_000_000, np.uint8)}
    stream, before = io.BytesIO(), memory_mb()
    np.savez_compressed(stream, **held)
    refused(name, tmp_path, file, stream.getvalue())
    assert memory_mb() - before < 256


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [1], -1, 10**30, True])
@pytest.mark.parametrize("file", ["result.json", "encoder.json"])
def test_run_directories_with_values_of_wrong_types(file, value, sound, tmp_path):
    """Every value in turn, that of the first row of the result too, is replaced by one of another type."""
    held = json.loads(sound("run directory")[file])
    for key in held:
        (tmp_path / file).write_text(json.dumps({**held, key: value}))
        check("run directory", tmp_path)
    (tmp_path / file).write_text(json.dumps(value))
    assert not check("run directory", tmp_path)
    for key in held["rows"][0] if "rows" in held else ():
        (tmp_path / file).write_text(json.dumps({**held, "rows": [{**held["rows"][0], key: value}]}))
        check("run directory", tmp_path)


@pytest.mark.parametrize("shape", [(5_000_000,), (100, 400_000), (7_000_000, 9)])
def test_arrays_of_many_rows_or_columns_do_not_take_all_memory(shape, sound, tmp_path):
    sound("npz")
    stream = io.BytesIO()
    np.savez_compressed(stream, edge_index=np.zeros((2, 3), dtype=int), x=np.zeros(shape, np.uint8))
    refused("npz", tmp_path, "g.npz", stream.getvalue())


def test_a_small_parquet_of_many_rows_does_not_take_all_memory(sound, tmp_path):
    """One of 262 kB took 5.2 GiB."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sound("parquet")
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": np.zeros(60_000_000, np.int8), "kind": np.zeros(60_000_000, np.int8)}), stream)
    assert len(stream.getvalue()) < 1 << 19
    before = memory_mb()
    refused("parquet", tmp_path, "nodes.parquet", stream.getvalue())
    assert memory_mb() - before < 64


def test_wide_tables_are_read_in_time(sound, tmp_path):
    """40,000 columns took 91 s, 100,000 equal headings 106 s."""
    sound("csv")
    wide = b",".join(b"c%d" % i for i in range(40_000))
    rows = [b"n%d,%s,train,%s" % (i, [b"a", b"b"][i % 2], b",".join([b"%d" % i] * 40_000)) for i in range(12)]
    (tmp_path / "nodes.csv").write_bytes(b"\n".join([b"id,kind,part," + wide, *rows, b""]))
    assert check("csv", tmp_path)
    refused("csv", tmp_path, "nodes.csv", b"id,kind,part" + b",x" * 90_000 + b"\n")


PIPES = [
    ("csv", "nodes.csv"),
    ("csv", "edges.csv"),
    ("graphml", "g.graphml"),
    ("npz", "g.npz"),
    ("edge lists", "e.csv"),
    ("edge lists", "e.npy"),
    ("edge lists", "e.npz"),
    ("graph on disk", "header.json"),
    ("graph on disk", "labels.npy"),
    ("recipe", "r.toml"),
    ("run directory", "config.toml"),
    ("run directory", "graph.npz"),
    ("run directory", "encoder.json"),
    ("run directory", "result.json"),
    ("run directory", "metrics.jsonl"),
    ("run directory", "model.safetensors"),
    ("unfinished run", "unfinished.safetensors"),
]


@pytest.mark.parametrize(("name", "file"), PIPES)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_files_that_never_end_are_refused(name, file, kind, sound, tmp_path):
    sound(name)
    (tmp_path / file).unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / file)
    else:
        (tmp_path / file).symlink_to("/dev/zero")
    assert not check(name, tmp_path)


def test_a_header_whose_name_is_a_path_is_refused(sound, tmp_path):
    header = json.loads(sound("graph on disk")["header.json"])
    refused("graph on disk", tmp_path, "header.json", json.dumps({**header, "name": "../../x"}).encode())


def test_a_parquet_of_one_long_text_named_often(tmp_path):
    """Written out it would be 4 GB."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from asgat.tabular.table import read_table

    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, dtype=np.int32)), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"id": words}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    before = memory_mb()
    assert len(read_table(tmp_path / "a.parquet")) == 40_000
    assert memory_mb() - before < 256


@pytest.mark.parametrize("name", ["../csbm", "../../../etc/passwd", "/etc/passwd", "a/../csbm", "..", "\0", "csbm\n"])
def test_a_recipe_is_looked_up_and_never_a_path(name):
    from asgat.recipe import read_recipe

    assert read_recipe(name) == {}


@pytest.mark.parametrize(
    "text",
    [
        b"[gcn]\nhidden = 1" + b"0" * 400,
        b"[gcn]\nhidden = 0x" + b"f" * 9000,
        b"[gcn]\nlayers = 1000000000",
        b"[asgat-cheb]\nfilter_hidden = [" + b"9" * 50 + b"]",
        b"model = " + b"[" * 5000 + b"]" * 5000,
        b"[gcn]\nlr = nan",
        b"model = '../../x'",
        b"x" * (2 << 20),
        b"a." * 100_000 + b"a = 1",
        b"[" + b"a." * 100_000 + b"a]",
        b"a = {" + b"b = {" * 5000 + b"}" * 5001,
        b"[asgat-cheb]\norder = 20000",
    ],
)
def test_recipes_that_ask_too_much(text, sound, tmp_path):
    sound("recipe")
    refused("recipe", tmp_path, "r.toml", text)


def with_metadata(content, **changes):
    """The model file with other settings next to its weights."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    held = header["__metadata__"]
    config = json.loads(held["config"])
    for key, value in changes.items():
        if key in held:
            held[key] = json.dumps(value)
        else:
            config[key] = value
            held["config"] = json.dumps(config)
    packed = json.dumps(header).encode()
    return struct.pack("<Q", len(packed)) + packed + content[8 + size :]


@pytest.mark.parametrize(
    "changes",
    [
        {"in_channels": 10**9},
        {"out_channels": 2**62},
        {"hidden": 10**9},
        {"heads": 10**8, "hidden": 10**5},
        {"layers": 99_999},
        {"layers": 10**9},
        {"filter_hidden": [10**6, 10**6]},
        {"order": 10**12},
        {"k": 10**400},
        {"model": "../../x"},
        {"model": {}},
    ],
)
def test_a_model_file_that_asks_for_more_than_it_holds(changes, sound, tmp_path):
    files, before = sound("run directory"), memory_mb()
    refused("run directory", tmp_path, "model.safetensors", with_metadata(files["model.safetensors"], **changes))
    assert memory_mb() - before < 256


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("indices.npy", lambda a: a + 2**30),
        ("indices.npy", lambda a: -a - 1),
        ("indices.npy", lambda a: a[::-1].copy()),
        ("indptr.npy", lambda a: a * 2),
        ("indptr.npy", lambda a: np.roll(a, 1)),
        ("shifted.npy", lambda a: a * np.nan),
        ("labels.npy", lambda a: a + 2**20),
        ("features.npy", lambda a: a * np.inf),
        ("split-0.npy", lambda a: a + 9),
        ("weight.npy", lambda a: -a),
    ],
)
def test_a_graph_on_disk_whose_numbers_lie_outside(file, change, sound, tmp_path):
    """Compiled code would read past the end of an array."""
    files = sound("graph on disk")
    with np.errstate(all="ignore"):
        array = change(np.load(io.BytesIO(files[file])))
    np.save(tmp_path / file, array)
    assert not check("graph on disk", tmp_path)


def test_records_of_a_graph_on_disk_are_its_rows(sound, tmp_path):
    files = sound("graph on disk")
    records = np.load(io.BytesIO(files["records.npy"]))
    records["start"][3] = 2**40
    np.save(tmp_path / "records.npy", records)
    assert not check("graph on disk", tmp_path)


def test_a_header_that_names_a_billion_splits(sound, tmp_path):
    header = json.loads(sound("graph on disk")["header.json"])
    refused("graph on disk", tmp_path, "header.json", json.dumps({**header, "num_splits": 10**9}).encode())


# -- downloads ----------------------------------------------------------------------------------------------------


def test_certificates_are_checked(tmp_path, monkeypatch):
    """The session pooch makes verifies TLS; nothing in the package changes that."""
    from pathlib import Path

    import pooch
    import requests

    import asgat
    from asgat.data import download

    asked: dict[str, Any] = {}

    def get(url, **options):
        asked.update(options, url=url)
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setattr(download, "checksums", lambda: {"planetoid/x": "0" * 64})
    with pytest.raises(AsgatError, match="could not be downloaded"):
        download.read_files(["planetoid/x"], tmp_path)
    assert asked["url"].startswith("https://")
    assert asked.get("verify", True) is True
    assert pooch.HTTPDownloader().kwargs.get("verify", True) is True
    texts = [path.read_text(encoding="utf-8") for path in Path(asgat.__file__).parent.rglob("*.py")]
    assert not any("verify=False" in text or "_create_unverified_context" in text for text in texts)


def test_a_file_name_cannot_leave_the_cache(monkeypatch, tmp_path):
    """Names in the table of checksums alone are read or fetched; none leads out, and nothing is unpacked to disk."""
    from pathlib import Path, PurePosixPath

    import asgat
    from asgat.data.download import checksums, read_files

    for name in checksums():
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
    (tmp_path / "secret").write_text("x")
    (tmp_path / "cache").mkdir()
    with pytest.raises(AsgatError, match="knows the checksum of"):
        read_files(["../secret"], tmp_path / "cache")
    texts = [path.read_text(encoding="utf-8") for path in Path(asgat.__file__).parent.rglob("*.py")]
    assert not any("extractall" in text or ".extract(" in text or "unpack_archive" in text for text in texts)


def test_members_of_an_archive_write_nothing(sound, tmp_path):
    """A member that is called ../../out.npy is an array of a strange name, in memory."""
    files = sound("npz")
    stream = io.BytesIO(files["g.npz"])
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("../../out.npy", zipfile.ZipFile(io.BytesIO(files["g.npz"])).read("x.npy"))
    (tmp_path / "g.npz").write_bytes(stream.getvalue())
    check("npz", tmp_path)
    assert not (tmp_path.parent.parent / "out.npy").exists()
