"""Files written whole or not at all, and the plain formats they hold."""

import errno
import json
import math
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError, brief
from asgat.files.user_file import read_user_file

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}")  # what a killed process leaves of a file it was writing
MAX_TOML_BYTES = 2**20
MAX_KEY_PARTS = 32
_DEEP_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}""")


def write_atomic(path: Path, content: bytes) -> None:
    """Writes a file so that whoever reads it finds the old content or the new, never a part."""
    write_all(path.parent, {path.name: content})


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes several files of a folder: all are on the disk before the first old one is replaced, in this order.

    Of several, the last one is removed first: where it is, all files are those it was written with.
    """
    temporary: dict[str, Path] = {}
    name = next(iter(contents))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in contents.items():
                if (folder / name).exists() and not (folder / name).is_file():  # a device would be replaced by a file
                    raise OSError(errno.EINVAL, "it is not a regular file")
                temporary[name] = folder / f".{name}.{secrets.token_hex(8)}"
                with temporary[name].open("xb") as file:  # the permissions any new file has
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            if len(contents) > 1:
                (folder / name).unlink(missing_ok=True)
            for name in contents:
                os.replace(temporary[name], folder / name)
        except BaseException:
            for path in temporary.values():
                path.unlink(missing_ok=True)
            raise
    except OSError as error:
        remedy = "Free some space and run it again" if error.errno in FULL else "Choose another place"
        raise AsgatError(f"{folder / name} cannot be written: {error.strerror}. {remedy}.") from error


def to_toml(values: Mapping[str, Any]) -> str:
    """Plain values and one level of tables as TOML."""
    lines = [f"{key} = {_toml(value)}" for key, value in values.items() if not isinstance(value, Mapping)]
    for name, table in values.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]"] + [f"{key} = {_toml(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """JSON is TOML except for escapes of surrogates, which TOML lacks, and DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def to_json(values: Any) -> bytes:
    """JSON that any reader accepts: infinity and NaN, which it cannot express, become null."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return (json.dumps(plain(values), indent=2, allow_nan=False) + "\n").encode()


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file."""
    text = read_user_file(path, MAX_TOML_BYTES).text()
    try:
        if _DEEP_KEY.search(text):  # tomllib takes memory that grows with the square of a key's parts
            raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise AsgatError(f"{path} cannot be read as TOML: {brief(error)}.") from error
