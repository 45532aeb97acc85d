"""Small faults put into source, one at a time: what a test suite has to notice.

A mutant is the module's syntax tree with one node changed: a comparison, an operator, a constant, a condition, a value
returned. Annotations, decorators, docstrings and texts are left alone: no test can or should tell.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Change = Callable[[], None]  # puts a fault into the tree it belongs to

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {"max": "min", "amax": "amin", "any": "all", "maximum": "minimum", "zeros": "ones", "floor": "ceil"}
OPPOSITES |= {other: name for name, other in OPPOSITES.items()}


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Args:
        number: its place among all of the module's.
        line: where it is.
        what: what is changed, such as ``Lt to LtE``.
        key: told from the function it is in and its place there, so that it stays when others are changed.
    """

    number: int
    line: int
    what: str
    key: str


def list_mutants(source: str) -> list[Mutant]:
    """All faults that can be put into a module."""
    tree = ast.parse(source)
    units = list(_units(tree))
    texts = [ast.unparse(unit) for unit in units]
    seen: Counter[str] = Counter()
    found = []
    for i, (line, what, _) in enumerate(_changes(tree)):
        inside = [text for unit, text in zip(units, texts, strict=True) if unit.lineno <= line <= unit.end_lineno]
        text = min(inside, key=len, default="")
        seen[text] += 1
        key = hashlib.sha256(f"{text}\n{seen[text]} {what}".encode()).hexdigest()[:16]
        found.append(Mutant(i, line, what, key))
    return found


def mutate(source: str, number: int) -> str:
    """The module with one fault, the one of that number.

    Example:
        >>> mutate("def f(a):\\n    return a < 3", 0)
        'def f(a):\\n    return a <= 3'
    """
    tree = ast.parse(source)
    for i, (_, _, change) in enumerate(_changes(tree)):
        if i == number:
            change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise IndexError(f"there is no mutant {number}")


def _units(tree: ast.Module) -> Iterator[Any]:
    """Statements of a module, and of its classes."""
    for node in tree.body:
        yield node
        yield from node.body if isinstance(node, ast.ClassDef) else []


def _changes(tree: ast.Module) -> Iterator[tuple[int, str, Change]]:
    for node in _code(tree):
        line = getattr(node, "lineno", 0)
        for what, change in _faults(node):
            yield line, what, change


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run, in the order of the text."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Raise):  # that it is raised is tested, its words need not be
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def _faults(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield f"{type(op).__name__} to {other.__name__}", lambda p=place, o=other: node.ops.__setitem__(p, o())  # type: ignore[misc]
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS and not _is_text(node):
        swapped = OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__} to {swapped.__name__}", lambda: setattr(node, "op", swapped())
    elif isinstance(node, ast.BoolOp):
        swapped_bool = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} to {swapped_bool.__name__}", lambda: setattr(node, "op", swapped_bool())
    elif isinstance(node, ast.UnaryOp):
        yield (
            f"{type(node.op).__name__} dropped",
            lambda: (
                setattr(node, "op", ast.UAdd())
                if not isinstance(node.op, (ast.Not, ast.Invert))
                else _become(node, node.operand)
            ),
        )
    elif isinstance(node, ast.Constant) and not isinstance(node.value, str):
        for value in _other_values(node.value):
            yield f"{node.value!r} to {value!r}", lambda v=value: setattr(node, "value", v)  # type: ignore[misc]
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield "condition negated", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        yield "returns None", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Break):
        yield "break to pass", lambda: _become(node, ast.Pass())
    elif isinstance(node, ast.Continue):
        yield "continue to pass", lambda: _become(node, ast.Pass())
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in OPPOSITES:
        yield f"{node.id} to {OPPOSITES[node.id]}", lambda: setattr(node, "id", OPPOSITES[node.id])
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in OPPOSITES:
        yield f"{node.attr} to {OPPOSITES[node.attr]}", lambda: setattr(node, "attr", OPPOSITES[node.attr])


def _other_values(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 1.0, value / 2.0] if value else [1.0]
    return []


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether an operand is a text, so that + joins and % fills in."""
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
               for part in parts)  # fmt: skip


def _become(node: ast.AST, other: ast.AST) -> None:
    """Turns a node into another in place."""
    fields = dict(ast.iter_fields(other))
    node.__class__ = type(other)
    node.__dict__.update(fields)
