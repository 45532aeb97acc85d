"""The error a user is meant to read, and helpers for its sentence."""

from collections.abc import Sequence


class AsgatError(ValueError):
    """Bad input, reported as a sentence: what was wrong, with the value, and what to do.

    The command line prints the sentence and exits with code 2; any other exception is a bug in this package.
    """


def suggest(name: str, known: list[str]) -> str:
    """The end of an "unknown name" sentence: the nearest known name, if one is close, and all names."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Choose from: {', '.join(known)}."


def listed(names: Sequence[object], most: int = 5) -> str:
    """Names in a sentence, the first of them if they are many: ``a, b and 3 more``."""
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + rest


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 head``, ``2 heads``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shown(value: object, length: int = 100) -> str:
    """A value as part of a sentence, shortened; Python refuses to print whole numbers of thousands of digits."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to be shown"
    return text if len(text) <= length else f"{text[:length]}…"


def brief(reason: object) -> str:
    """The error message of another library on one line, shortened: it may quote the file, or fill a page."""
    text = " ".join(str(reason).split())
    return text if len(text) <= 300 else f"{text[:300]}…"


def hardware_error(error: Exception) -> str | None:
    """A sentence for an error caused by the machine, which torch raises as RuntimeError; None for any other error."""
    reason = brief(str(error).partition("\n")[0]).rstrip(".")
    if "does not have a deterministic implementation" in reason:
        what = reason.partition(" does not have")[0]
        return f"On CUDA {what} is not deterministic; leave out --deterministic, or use --device cpu."
    if isinstance(error, MemoryError) or "out of memory" in reason or "can't allocate memory" in reason:
        return (
            f"There is not enough memory: {reason or 'none is left'}. Set fewer heads, a smaller hidden size or "
            "fewer candidates."
        )
    if any(cause in reason for cause in ("busy or unavailable", "no CUDA-capable device", "driver")):
        return f"The GPU cannot be used: {reason}. See what else is running on it, or use --device cpu."
    return None
