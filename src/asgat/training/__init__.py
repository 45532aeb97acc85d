"""How any model is trained on any data set."""

from asgat.lazy import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
