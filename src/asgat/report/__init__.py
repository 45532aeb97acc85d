"""The HTML report of a run, and figures of trained models."""

from asgat.report.figures import comparison_figure, filter_figure

__all__ = ["comparison_figure", "filter_figure"]
