"""Graphs that stay on disk, and the conversion to them."""
