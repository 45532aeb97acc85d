"""Searches for settings, scored on validation nodes only. Needs the extra ``tune``."""
