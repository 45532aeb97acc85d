"""Files for the readers: the published ones where they are at hand, and small ones written on the spot."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from asgat.data import download

Write = Callable[[dict[str, bytes]], Path]


@pytest.fixture
def write_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A function that writes files into a data directory and makes their checksums the expected ones."""

    def write(contents: dict[str, bytes]) -> Path:
        for name, content in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        table = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        monkeypatch.setattr(download, "checksums", lambda: table)
        return tmp_path

    return write


@pytest.fixture
def legacy_pickle() -> Callable[[Any], bytes]:
    """A function that pickles as Python 2 did when the Planetoid files were made."""
    return lambda value: b"\x80\x02" + _emit(value) + b"."


@pytest.fixture
def planetoid(legacy_pickle: Callable[[Any], bytes]) -> dict[str, bytes]:
    """A small Cora: 2 nodes to train, 500 to validate, 3 others, 3 to test and, at 507, one without a label.

    Node i has feature i % 3 and label i % 2, and the graph is a path.
    """
    known, test, num_nodes = 505, [508, 505, 506], 509
    label, feature = np.eye(2, dtype=np.int32), np.eye(3, dtype=np.float32)
    path = {i: [j for j in (i - 1, i + 1) if 0 <= j < num_nodes] for i in range(num_nodes)}
    parts = {
        "allx": sp.csr_array(feature[np.arange(known) % 3]),
        "tx": sp.csr_array(feature[np.array(test) % 3]),
        "ally": label[np.arange(known) % 2],
        "ty": label[np.array(test) % 2],
        "y": label[np.arange(2) % 2],
        "graph": path,
    }
    files = {f"planetoid/ind.cora.{part}": legacy_pickle(value) for part, value in parts.items()}
    files["planetoid/ind.cora.test.index"] = "".join(f"{node}\n" for node in test).encode()
    return files


def _emit(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if value is None:
        return b"N"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, (str, bytes)):
        content = value.encode("latin1") if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(content)) + content
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_emit, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(_emit, value)) + b"e"
    if isinstance(value, dict):
        items = b"".join(_emit(key) + _emit(entry) for key, entry in value.items())
        return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + items + b"u"
    if isinstance(value, np.dtype):
        state = (3, "<", None, None, None, -1, -1, 0)
        return b"cnumpy\ndtype\n" + _emit((value.str[1:], 0, 1)) + b"R" + _emit(state) + b"b"
    if isinstance(value, np.ndarray):
        made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + _emit((0,)) + _emit("b") + b"tR"
        return made + _emit((1, value.shape, value.dtype, False, value.tobytes())) + b"b"
    parts = {"_shape": value.shape, "data": value.data, "indices": value.indices, "indptr": value.indptr}
    items = b"".join(_emit(key) + _emit(entry) for key, entry in parts.items())
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + items + b"ub"
