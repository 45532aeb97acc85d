"""The array of a .npy file, mapped into memory."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, brief


def open_npy(path: Path, remedy: str, mode: Literal["r", "c"] = "r") -> npt.NDArray[Any]:
    """The array of a file, of which only what is used is read.

    A memory map cannot be larger than the file, whatever its header promises; arrays of objects, which are pickles, are
    refused. Errors end with the remedy, such as ``"convert the graph again"``. In mode ``"c"`` the array can be
    changed; the changes stay in this process.
    """
    if not path.is_file():  # a pipe would block
        raise AsgatError(f"{path} cannot be read: No such file; {remedy}.")
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode=mode))
    except Exception as error:  # the header is parsed as Python, which can fail in many ways
        reason = getattr(error, "strerror", None) or brief(error)
        raise AsgatError(f"{path} cannot be read: {reason}; {remedy}.") from error
