"""Searches for settings, judged on validation nodes alone. Needs the extra ``tune``."""
