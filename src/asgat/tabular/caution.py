"""Notes a user must not miss: the command line marks them, and Python warns of them."""

import warnings
from collections.abc import Iterable


class Caution(str):
    """A note about a likely mistake in the data, in a sentence."""

    __slots__ = ()


def warn_of(notes: Iterable[str]) -> None:
    """Warns of those of the notes that are cautions; the warning names the line that called the caller."""
    for note in notes:
        if isinstance(note, Caution):
            warnings.warn(str(note), UserWarning, stacklevel=3)
