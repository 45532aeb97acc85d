"""Data sets: the paper's, a few more, and some that need no files."""

from asgat.lazy import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
