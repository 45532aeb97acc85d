"""What a node attends to, and through which frequencies."""

from asgat.explain.attention_rows import AttentionRows, attention_rows
from asgat.explain.bands import BAND_NAMES, BANDS
from asgat.explain.explanation import check_attends, explain, explain_filters

__all__ = ["BANDS", "BAND_NAMES", "AttentionRows", "attention_rows", "check_attends", "explain", "explain_filters"]
