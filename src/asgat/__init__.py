"""Adaptive spectral graph attention: node classification on graphs of any homophily.

The public names, those of ``__init__.pyi``, are imported when they are first used, so that ``import asgat`` is quick.
"""

from asgat.lazy import lazy_package

__version__ = "0.2.0"

__getattr__, __dir__, _names = lazy_package(__name__, __file__)
__all__ = [*_names, "__version__"]
