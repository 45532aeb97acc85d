"""Layers and models. They know neither files nor training."""

from asgat.lazy import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
