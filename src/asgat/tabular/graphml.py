"""GraphML as two tables, nodes and edges; document types and references outside the file are refused."""

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from asgat.files.user_file import UserFile
from asgat.memory import check_memory
from asgat.tabular.column import Column
from asgat.tabular.table import CELL_BYTES, Table, open_checked

MAX_DEPTH = 32


def read_graphml(path: Path | str, directed: bool = False) -> tuple[Table, Table]:
    """The nodes, with their ``id`` and attributes, and the edges, with ``source``, ``target`` and attributes.

    A document type is refused, so that no entity is ever expanded or fetched; so are nested graphs and hyperedges.
    With ``directed``, all edges must have a direction.
    """
    raw = open_checked(path)
    with raw.guard():
        return _Reader(raw, directed).read()


@dataclass
class _Part:
    """Nodes or edges in the order of the file: an attribute holds its values by row."""

    headings: tuple[str, ...]
    rows: list[list[str]] = field(default_factory=list)
    attributes: dict[str, dict[int, str]] = field(default_factory=dict)


class _Reader:
    def __init__(self, raw: UserFile, directed: bool) -> None:
        self.raw, self.directed = raw, directed
        self.default = ""  # whether edges have a direction: "directed" or "undirected"
        self.names: dict[str, str] = {}  # of attributes, by their keys
        self.defaults: dict[str, str] = {}
        self.parts = {"node": _Part(("id",)), "edge": _Part(("source", "target"))}
        self.path: list[str] = []
        self.text: list[str] | None = None  # of the innermost data or default
        self.key = ""
        self.notes: list[str] = []
        self.graphs = 0

    def read(self) -> tuple[Table, Table]:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.buffer_text = True
        try:
            parser.Parse(self.raw.content, True)
        except expat.ExpatError as error:
            raise self.raw.failure(f"it is not valid XML: {error}") from error
        if not self.graphs:
            raise self.raw.failure("it holds no graph")
        if not self.parts["node"].rows:
            raise self.raw.failure("its graph has no nodes")
        return self._table(self.parts["node"], []), self._table(self.parts["edge"], self.notes)

    def _table(self, part: _Part, notes: list[str]) -> Table:
        used = {key: values for key, values in part.attributes.items() if values or self.defaults.get(key)}
        size = len(part.rows)
        cells = size * (len(used) + len(part.headings))
        check_memory(2 * CELL_BYTES * cells, str(self.raw.path))  # texts, then numbers
        columns = {}
        for place, heading in enumerate(part.headings):
            # An id is never missing, even if it is called null.
            columns[heading] = Column(heading, [row[place] for row in part.rows], np.zeros(size, dtype=bool))
        for key, values in used.items():
            name = self.names[key] if self.names[key] not in columns else f"{self.names[key]} ({key})"
            columns[name] = Column.of_texts(name, [values.get(row, self.defaults.get(key, "")) for row in range(size)])
        return Table(columns, self.raw.path.name, notes)

    def _doctype(self, *_: object) -> None:
        raise self.raw.failure("it has a document type, which GraphML does not need and which is refused; remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if not self.path and name != "graphml":
            raise self.raw.failure(f"it is not GraphML: its outermost element is {name!r}")
        if len(self.path) >= MAX_DEPTH:
            raise self.raw.failure(f"its elements are nested more than {MAX_DEPTH} deep")
        if name == "graph":
            if self.graphs:
                raise self.raw.failure("it holds more than one graph; keep one per file")
            self.graphs += 1
            self.default = attributes.get("edgedefault", "")
            if self.default == "directed" and not self.directed:
                self.notes.append(
                    "The graph is directed; its edges are read as undirected. `asgat fit --directed` uses directions."
                )
        elif name == "hyperedge":
            raise self.raw.failure("it has a hyperedge; an edge must join two nodes")
        elif name == "key":
            self.key = self._need(name, attributes, "id")
            self.names[self.key] = attributes.get("attr.name", self.key)
            for kind, part in self.parts.items():
                if attributes.get("for", "all") in ("all", kind):
                    part.attributes.setdefault(self.key, {})
        elif name in self.parts:
            part = self.parts[name]
            part.rows.append([self._need(name, attributes, heading) for heading in part.headings])
            own = attributes.get("directed", str(self.default != "undirected").lower())
            if name == "edge" and self.directed and own == "false":
                raise self.raw.failure("it has an edge without a direction; read it without --directed")
        elif name == "data":
            self.key, self.text = self._need(name, attributes, "key"), []
        elif name == "default":
            self.text = []
        self.path.append(name)

    def _end(self, _: str) -> None:
        name = self.path.pop()
        if name not in ("data", "default") or self.text is None:
            return
        text, self.text = "".join(self.text), None
        above = self.path[-1] if self.path else ""
        if self.key not in self.names:
            raise self.raw.failure(f"the attribute {self.key!r} is used but no key declares it")
        if name == "default":
            self.defaults[self.key] = text
        elif above in self.parts:
            part = self.parts[above]
            if self.key not in part.attributes:
                raise self.raw.failure(f"the attribute {self.key!r} is not declared for a {above}")
            part.attributes[self.key][len(part.rows) - 1] = text

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _need(self, element: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self.raw.failure(f"a {element} has no {name}")
        return attributes[name]
