"""What was learned, shown."""

from asgat.report.figures import filter_figure

__all__ = ["filter_figure"]
