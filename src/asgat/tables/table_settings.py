"""What the rows of a candidate table depend on, apart from the graph."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from asgat.errors import AsgatError
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.exact_builder import build_exact
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.truncated_builder import build_truncated, node_records

Builder = Literal["exact", "truncated"]

# Seconds on two cores: of one multiplication by an entry of X, and of one row of a truncated table.
_EXACT_SECONDS, _TRUNCATED_SECONDS = 1e-9, 1.5e-4


@dataclass(frozen=True)
class TableSettings:
    """The arguments of a table: see :class:`~asgat.tables.TableOperator`."""

    order: int
    candidates: int
    cap: int = 256
    storage: str = "float32"
    builder: Builder = "exact"
    neighbourhood: int = 512

    def __post_init__(self) -> None:
        if self.builder not in ("exact", "truncated"):
            raise AsgatError(f"builder must be exact or truncated, not {self.builder!r}.")

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.storage)
        return dtype

    def prepare(self, matrix: Any) -> SparseRows:
        """X in a form of which parts of the table can be built one after the other without preparing it again."""
        rows = SparseRows.of(matrix)
        if self.builder == "exact" or rows.records is not None:
            return rows
        # In arrays of its own, of which the builder may reorder rows.
        return SparseRows(rows.indptr, rows.indices.copy(), rows.data.copy(), node_records(rows))

    def build(
        self,
        matrix: Any,
        rows: Any = None,
        device: torch.device | str = "cpu",
        progress: Progress | None = None,
    ) -> CandidateTable:
        """The table of X, or some rows of it, in memory; a truncated one is built on the CPU."""
        if self.builder == "exact":
            return build_exact(matrix, self.order, self.candidates, self.cap, rows, self.dtype, device, progress)
        keep = max(self.neighbourhood, self.candidates)
        return build_truncated(matrix, self.order, self.candidates, keep, rows, self.dtype, progress)

    def seconds_per_row(self, num_nodes: int, num_entries: int) -> float:
        """About what a row takes to build."""
        if self.builder == "exact":
            return (num_nodes + num_entries) * self.order * _EXACT_SECONDS
        return _TRUNCATED_SECONDS

    @property
    def bytes_per_row(self) -> int:
        """About what a row takes, at most; a row of an exact table may hold the candidates of every order."""
        orders, item = self.order + 1, self.dtype.itemsize
        exact = self.builder == "exact"
        entries = self.candidates * (orders if exact else 1)
        return entries * (4 + orders * item) + 5 + (16 * orders if exact else 0)

    def to_dict(self) -> dict[str, Any]:
        """The settings that matter to the builder."""
        values = asdict(self)
        del values["cap" if self.builder == "truncated" else "neighbourhood"]
        return values
