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
