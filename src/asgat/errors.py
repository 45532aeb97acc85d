"""The one error a user is meant to read."""


class AsgatError(ValueError):
    """Bad input, told as a sentence: what was wrong, with the value, and what to do.

    The command line prints the sentence and exits with code 2; any other exception is a bug of ours.
    """


def suggest(name: str, known: list[str]) -> str:
    """The end of an "unknown name" sentence: the nearest known name if one is close, then all of them."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known are: {', '.join(known)}."


def shown(value: object, length: int = 100) -> str:
    """A value as a part of a sentence, cut short; Python itself writes no whole number of thousands of digits."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to be shown"
    return text if len(text) <= length else f"{text[:length]}…"


def brief(reason: object, length: int = 300) -> str:
    """What another library says was wrong, on one line and cut short: it may quote the file, or fill a page."""
    text = " ".join(str(reason).split())
    return text if len(text) <= length else f"{text[:length]}…"
