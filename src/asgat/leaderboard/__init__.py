"""Which model fits a graph: a field of candidates, trained in rounds, chosen on validation nodes."""
