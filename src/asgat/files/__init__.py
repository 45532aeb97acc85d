"""Reading and writing files: atomic writes, locks, bounded readers."""
