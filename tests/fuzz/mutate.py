"""Files that are almost right: bytes changed anywhere, and, where the format is known, changed inside its structure.

Damage that a checksum or a length would reveal at once tests little, so archives are packed again around a changed
member, safetensors around a changed header, and JSON around a changed value.
"""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zipfile
from typing import Any

import numpy as np

NUMBERS = (
    b"0",
    b"-1",
    b"1e999",
    b"nan",
    b"-0.0",
    b"2147483648",
    b"-9223372036854775809",
    b"9" * 40,
    b"1" * 5000,
    b"0x7",
    b"4294967296",
    b"1000000000",
    b"1e308",
    b"5e-324",
    b"''",
    b"true",
    b"None",
)
WORDS = (
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b"\t",
    b";",
    b"<",
    b"&x;",
    b"]]>",
    b"<graph>",
    b"</node>",
    b"[",
    b"{",
    b"[" * 3000,
    b"{" * 3000,
    b"a." * 2000,
    b"../../../etc/passwd",
    b"PK\x03\x04",
    b"PAR1",
    b"\x93NUMPY",
    b"cos\nsystem\n",
    b"R",
    b".",
    b"\x80\x04",
    b"<!DOCTYPE x>",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
    b"NaN",
    b"Infinity",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    3.5,
    2**31,
    2**63,
    10**30,
    10**400,
    -(10**400),
    1e308,
    float("nan"),
)
VALUES += (
    float("inf"),
    "",
    "x",
    "../../x",
    "\x00",
    "\ud800",
    "1" * 5000,
    [],
    {},
    [[]],
    [None],
    {"": None},
    "none",
    "own",
)
DTYPES = ("?", "i1", "u1", "<i4", ">i8", "u8", "f2", "f4", ">f8", "c8", "S3", "U2", "M8[s]", "O", "i4,f8")


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One of the ways to spoil a file."""
    inner = None
    if rng.random() < 0.6:
        try:
            inner = _structured(content, rng)
        except Exception:  # what was spoiled before has no structure left
            inner = None
    changed = inner if inner is not None else spoil_bytes(content, rng)
    return spoil_bytes(changed, rng) if rng.random() < 0.1 else changed


def _structured(content: bytes, rng: random.Random) -> bytes | None:
    if content[:2] == b"PK":
        return spoil_npz(content, rng)
    if content[:6] == b"\x93NUMPY":
        return _npy(spoil_array(np.load(io.BytesIO(content)), rng))
    if re.match(rb"\s*(\[[\w.-]+\]\s|[\w-]+ = )", content):
        return spoil_toml(content, rng)
    if content[:1] == b"{" and content.count(b"\n{"):
        return spoil_lines(content, rng)
    if content[:1] in b"{[":
        return spoil_json(content, rng)
    if content[8:9] == b"{":
        return spoil_safetensors(content, rng)
    if content[:4] == b"PAR1":
        return spoil_parquet(content, rng)
    if rng.random() < 0.03 and b"," in content[:200]:
        return widen(content, rng)
    return None


def spoil_bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 200)))
        match rng.randrange(8):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.randrange(256)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            case 4:
                data[at:at] = rng.choice(WORDS)
            case 5:
                data[at:end] = rng.choice((b"\x00", b"\xff", b"\x7f", b" ")) * (end - at)
            case 6:
                found = [match for match in re.finditer(rb"\d+(\.\d+)?", bytes(data[at : at + 4000]))]
                if found:
                    one = rng.choice(found)
                    data[at + one.start() : at + one.end()] = rng.choice(NUMBERS)
            case _:
                if rng.random() < 0.3:
                    del data[at:]
    return bytes(data)


def spoil_json(content: bytes, rng: random.Random) -> bytes:
    return json.dumps(_spoil_value(json.loads(content), rng), ensure_ascii=rng.random() < 0.8).encode(
        "utf-8", "surrogatepass"
    )


def spoil_lines(content: bytes, rng: random.Random) -> bytes:
    """One line of JSON spoiled, dropped or repeated."""
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines[at:at] = [lines[at]] * rng.choice((1, 50))
        case _:
            lines[at] = spoil_json(lines[at], rng) + b"\n"
    return b"".join(lines)


def spoil_toml(content: bytes, rng: random.Random) -> bytes:
    """One value of another type, one key of another name, or of very many parts."""
    found = list(re.finditer(rb"(?m)^([\w-]+) = (.*)$", content))
    if not found:
        return content
    one = rng.choice(found)
    key, value = one.groups()
    match rng.randrange(8):
        case 0:
            key = rng.choice((b"a." * rng.choice((50, 100_000)) + b"a", b"x", b'""', b"model", rng.choice(found)[1]))
        case 1:
            value = rng.choice((b"[" * 900 + b"]" * 900, b"{a = " * 900 + b"1" + b"}" * 900))
        case 2:
            value = rng.choice(found)[2]
        case _:
            value = rng.choice(
                (*NUMBERS, b"[]", b"{}", b"[[]]", b"''", b'"../../x"', b"1979-05-27", b"inf", b"[1, 'a']")
            )
    return content[: one.start()] + key + b" = " + value + content[one.end() :]


def widen(content: bytes, rng: random.Random) -> bytes:
    """A table of text with thousands of columns, with names of their own or all the same."""
    count, same = rng.choice((300, 20_000)), rng.random() < 0.5
    heading, *rows = content.splitlines()
    names = b"".join(b",c" if same else b",c%d" % i for i in range(count))
    return b"\n".join([heading + names, *(row + b",1" * count for row in rows)]) + b"\n"


def _spoil_value(value: Any, rng: random.Random) -> Any:
    """A value with one part of it replaced, dropped, repeated or, where it is JSON in a text, spoiled in turn."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"') and rng.random() < 0.9:
        return json.dumps(_spoil_value(json.loads(value), rng))
    if isinstance(value, (dict, list)) and value and rng.random() < 0.92:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        changed = value.copy()
        match rng.randrange(8):
            case 0:
                del changed[key]
            case 1 if isinstance(changed, dict):
                changed[rng.choice(("", "x", "__class__", "format"))] = rng.choice(VALUES)
            case 1 if isinstance(changed, list):
                changed *= rng.choice((2, 100))
            case 2:
                changed[key] = value[rng.choice(keys)]
            case _:
                changed[key] = _spoil_value(value[key], rng)
        return changed
    if rng.random() < 0.02:
        deep: Any = None
        for _ in range(900):
            deep = [deep]
        return deep
    return rng.choice(VALUES)


def spoil_safetensors(content: bytes, rng: random.Random) -> bytes:
    """Header and data apart; the length before the header is made to fit, mostly."""
    size = struct.unpack("<Q", content[:8])[0]
    header, data = content[8 : 8 + size], content[8 + size :]
    part = rng.randrange(4)
    if part == 0:
        return content[:8] + header + spoil_bytes(data, rng)
    header = spoil_bytes(header, rng) if part == 1 else spoil_json(header, rng)
    claimed = len(header) if rng.random() < 0.97 else rng.choice((0, 2**40, 2**64 - 1))
    return struct.pack("<Q", claimed) + header + data


def spoil_npz(content: bytes, rng: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(list(members))
    match rng.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[rng.choice(("../../out.npy", "/out.npy", "x.npy", "", name.upper()))] = members[name]
        case 2 | 3:
            members[name] = spoil_bytes(members[name], rng)
        case 4:
            members[name] = members[rng.choice(list(members))]
        case 5 if rng.random() < 0.1:
            members[name] = _npy(expand(np.load(io.BytesIO(members[name])), rng))
        case _:
            members[name] = _npy(spoil_array(np.load(io.BytesIO(members[name])), rng))
    stream = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.95 else rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(stream, "w", method) as archive:
        for key, value in members.items():
            archive.writestr(zipfile.ZipInfo(key), value, method)  # without the time of day
    return stream.getvalue()


def expand(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    """Its first number ten million times, which packs to next to nothing."""
    shape = list(array.shape) or [1]
    shape[rng.randrange(len(shape))] *= 10_000_000 // max(1, array.size)
    return np.full(shape, array.flat[0] if array.size else 0, rng.choice((array.dtype, np.uint8)))


def spoil_array(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    array = array.copy()
    match rng.randrange(6):
        case 0:
            return array.astype(rng.choice(DTYPES)) if array.dtype.names is None else array[:0]
        case 1:
            return array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
        case 2:
            return np.concatenate([array, array]) if array.ndim else array
        case 3:
            return rng.choice((array.reshape(-1), array[None], array.T, array.reshape(*array.shape, 1)))
        case _ if array.size:
            place = tuple(rng.randrange(size) for size in array.shape)
            field = array[rng.choice(array.dtype.names)] if array.dtype.names else array
            kind = field.dtype.kind
            choices = (
                [np.nan, np.inf, -np.inf, 1e300, -1.0] if kind == "f" else [-1, 0, 1, 127, 2**31 - 1, -(2**31), 2**62]
            )
            with np.errstate(all="ignore"):
                field[place] = np.array(rng.choice(choices)).astype(field.dtype)
            return array
    return array[:0]


def spoil_parquet(content: bytes, rng: random.Random) -> bytes:
    """The same table with one column of another kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    rows, at = len(table), rng.randrange(len(table.column_names))
    others: list[Any] = [
        pa.array([None] * rows),
        pa.array([[1, 2]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([b"\xff"] * rows),
        pa.array(range(rows), pa.timestamp("ns")),
        pa.array([f"{i}" for i in range(rows)], pa.large_string()),
        pa.array(["x"] * rows).dictionary_encode(),
        pa.array([float("nan")] * rows),
        pa.array([2**64 - 1] * rows, pa.uint64()),
        pa.array([1] * rows, pa.decimal128(38, 0)),
        pa.array([True, None] * rows)[:rows],
    ]
    match rng.randrange(4):
        case 0 if rng.random() < 0.1:
            table = table.take(pa.array(np.zeros(3_000_000, dtype=np.int32)))
        case 0:
            table = table.remove_column(at)
        case 1:
            table = table.append_column(table.column_names[at], table.column(at))
        case 2:
            table = table.slice(0, rng.randrange(rows))
        case _:
            table = table.set_column(at, table.column_names[at], rng.choice(others))
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()
