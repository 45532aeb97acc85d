"""The tables and figures, one file each."""
