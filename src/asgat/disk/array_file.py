"""Arrays of numbers from a user's files: features, labels and splits."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from asgat.errors import AsgatError, brief
from asgat.files.npy import open_npy


def read_array(path: Path, whole: bool = False) -> Any:
    """The numbers of a .npy file, memory-mapped, or of a text file separated by commas, semicolons, tabs or spaces."""
    if not path.is_file():
        raise AsgatError(f"{path} is not a file; give a .npy or .csv file.")
    if path.suffix.lower() == ".npy":
        return open_npy(path, "write it with numpy.save")
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
        separator = next((s for s in (",", ";", "\t") if s in first), None)
        names = not all(is_number(word) for word in first.strip().split(separator))
        kind: Any = np.int64 if whole else np.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns if there is no number at all
            return np.loadtxt(path, kind, delimiter=separator, skiprows=int(names), ndmin=1 if whole else 2)
    except (OSError, ValueError, OverflowError, Warning) as error:
        raise AsgatError(f"{path} cannot be read as numbers: {brief(error)}.") from error


def is_number(word: str | bytes) -> bool:
    """Whether a word of a text is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True
