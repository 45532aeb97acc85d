"""What a node attends to, and through which frequencies."""

from asgat.explain.attention_rows import AttentionRows, attention_rows, check_attends, explain, explain_filters
from asgat.explain.responses import BAND_NAMES, BANDS

__all__ = ["BANDS", "BAND_NAMES", "AttentionRows", "attention_rows", "check_attends", "explain", "explain_filters"]
