"""The paper's tables and figures, benchmarks, and models that the package does without: ``python -m reproduce``.

It is run from a clone and is not part of the installed package, which does not import it.
"""
