"""Public files: found locally or downloaded, and checked.

Every file is read whole and checked against the SHA-256 in ``checksums.txt``; readers get the very bytes that were
checked, so that nothing can change between the check and the use.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path

from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile

# The first folder of a file's name picks the address; the rest of the name follows it.
BASE_ADDRESSES = {
    "planetoid": "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data",
    "geom-gcn": "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master",
    "heterophilous-graphs": "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/main",
}
MAX_FILE_BYTES = 64 * 2**20  # eight times the largest published file
TIMEOUT_SECONDS = 30


def data_directory(data_dir: Path | str | None = None) -> Path:
    """The folder files are looked for in: the argument, else ``ASGAT_DATA_DIR``, else a per-user cache."""
    chosen = data_dir or os.environ.get("ASGAT_DATA_DIR")
    if not chosen:
        import pooch

        chosen = pooch.os_cache("asgat")
    return Path(os.path.expanduser(chosen))


@cache
def checksums() -> dict[str, str]:
    """SHA-256 of every file the package reads, by its name below the data directory."""
    return parse_checksums(package_files("asgat.data").joinpath("checksums.txt").read_text(encoding="ascii"))


def parse_checksums(table: str) -> dict[str, str]:
    """The SHA-256 by the name of a file, from lines as ``sha256sum`` writes them."""
    return {name: digest for digest, name in (line.split() for line in table.splitlines())}


def missing_files(names: Sequence[str], data_dir: Path | str | None = None) -> list[str]:
    """Those of the named files that are not in the data directory."""
    folder = data_directory(data_dir)
    return [name for name in names if not os.path.lexists(folder / name)]


def read_files(
    names: Sequence[str], data_dir: Path | str | None = None, known: Mapping[str, str] | None = None
) -> dict[str, RawFile]:
    """The named files, such as ``"planetoid/ind.cora.graph"``, downloaded first where they are missing, and checked.

    ``known`` are the SHA-256 by name; those of :func:`checksums` by default.
    """
    known = checksums() if known is None else known
    unknown = [name for name in names if name not in known]
    if unknown:  # which also keeps names from leading out of the folder
        raise AsgatError(f"{unknown[0]!r} is not a file this package knows the checksum of.")
    folder, missing = data_directory(data_dir), missing_files(names, data_dir)
    if missing:
        _download(missing, folder, known)
    files = {name: RawFile.read(folder / name, MAX_FILE_BYTES) for name in names}
    for name, raw in files.items():
        expected, found = known[name], hashlib.sha256(raw.content).hexdigest()
        if found != expected:
            raise AsgatError(
                f"{raw.path} is corrupt: expected SHA-256 {expected}, found {found}; delete it to download it again."
            )
    return files


def address_of(name: str) -> str:
    source, _, rest = name.partition("/")
    return f"{BASE_ADDRESSES[source]}/{rest}"


def _download(names: Sequence[str], folder: Path, known: Mapping[str, str]) -> None:
    """Downloads files into the data directory, with one progress bar for all of them.

    pooch writes to a temporary file next to the target, checks its SHA-256 and only then renames it, so an interrupted
    or wrong download leaves no file behind, and two processes can download at once.
    """
    import pooch
    from tqdm import tqdm

    pooch.get_logger().setLevel("WARNING")  # its line per file would break the bar
    with tqdm(names, desc="Downloading", unit="file", disable=None) as progress:
        for done, name in enumerate(progress):
            path = folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                pooch.retrieve(
                    address_of(name),
                    known_hash=f"sha256:{known[name]}",
                    fname=path.name,
                    path=path.parent,
                    downloader=pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS),
                )
            except Exception as error:
                also = f" Also missing there: {', '.join(names[done + 1 :])}." if done + 1 < len(names) else ""
                raise AsgatError(
                    f"{name} is not in {folder} and could not be downloaded from {address_of(name)} "
                    f"({_reason(error)}). Put the file at {path}, or point ASGAT_DATA_DIR or --data-dir at a folder "
                    f"that has it.{also}"
                ) from error


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_SECONDS} s"
    if isinstance(error, requests.RequestException):
        return "no connection, or it was interrupted"
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, ValueError):
        return "the downloaded file is corrupt: its SHA-256 is not the expected one"
    return f"{type(error).__name__}: {error}"
