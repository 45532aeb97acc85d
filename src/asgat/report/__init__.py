"""What was learned, shown."""

from asgat.report.figures import comparison_figure, filter_figure

__all__ = ["comparison_figure", "filter_figure"]
