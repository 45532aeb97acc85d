"""The finished steps of a conversion, in a file of its folder, from which it resumes after it was killed."""

import json
from pathlib import Path
from typing import Any

from asgat.files.atomic import write_atomic

FILE = "journal.json"


class Journal:
    """Values by name, on the disk as soon as they are set.

    Args:
        folder: where the work is done; without one, nothing is written.
        source: what it is done from; a journal of another source is not used.
    """

    def __init__(self, folder: Path | None = None, source: str = "") -> None:
        self.path = None if folder is None else folder / FILE
        self.values: dict[str, Any] = {"source": source}
        if self.path is None:
            return
        try:
            held = json.loads(self.path.read_bytes())
            if isinstance(held, dict) and held.get("source") == source:
                self.values = held
        except (OSError, ValueError):
            pass  # none, or a damaged one: the work starts again

    @property
    def begun(self) -> bool:
        return len(self.values) > 1

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    def set(self, **values: Any) -> None:
        self.values.update(values)
        if self.path is not None:
            write_atomic(self.path, json.dumps(self.values).encode())

    def remove(self) -> None:
        """The work is finished."""
        if self.path is not None:
            self.path.unlink()
