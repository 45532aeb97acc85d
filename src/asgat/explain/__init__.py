"""What a node attends to, and through which frequencies."""

from functools import partial

from asgat.moved import moved_name

__getattr__ = partial(moved_name, __name__)
