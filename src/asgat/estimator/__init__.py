"""A user's graph from fit to predictions: the scikit-learn estimator, the health table, trained runs."""
