"""Parts of pages that are written from the program itself: ``<!-- generated: NAME -->`` in a page becomes its text."""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

MARKER = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill_in(app: Any, page: str, source: list[str]) -> None:
    """Replaces the markers of a page; an unknown name is an error."""
    if MARKER.search(source[0]):
        source[0] = MARKER.sub(lambda marker: PARTS[marker[1]](), source[0])


def commands() -> str:
    """Every command with its arguments, options and examples, as its ``--help`` has them."""
    from typer.main import get_command

    from asgat.cli.app import app

    return "\n\n".join(_command(f"asgat {name}", command) for name, command in _leaves(get_command(app)))


def _leaves(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{prefix}{name} ")
        elif not command.hidden:
            yield prefix + name, command


def _command(name: str, command: Any) -> str:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    usage = " ".join(_optional(param, _argument_name(param)) for param in arguments)
    parts = [f"## {name}", _escape(command.help or ""), f"```text\n{name} [OPTIONS] {usage}".rstrip() + "\n```"]
    rows = [(f"`{_spelling(param)}`", _escape(param.help or ""), _default(param)) for param in shown]
    parts.append(_table(("argument or option", "meaning", "default"), rows))
    if examples := _examples(command.epilog or ""):
        parts.append("```\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(parts)


def _examples(epilog: str) -> list[str]:
    text = re.sub(r"^Examples?:\s*", "", epilog)
    return [line.strip() for line in text.split("·") if line.strip()]


def _argument_name(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _optional(param: Any, name: str) -> str:
    return name if param.required else f"[{name}]"


def _spelling(param: Any) -> str:
    if param.param_type_name == "argument":
        return _argument_name(param)
    names = ", ".join([*param.opts, *param.secondary_opts])
    return names if param.is_flag else f"{names} {param.metavar or param.name.upper()}"


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if param.default is None or param.default is False or param.default in ((), []):
        return ""
    return f"`{param.default}`"


def settings() -> str:
    """The settings that models share, by group, and those that only some of them have."""
    from asgat import config

    shared = [config.TrainConfig, config.SpectralConfig, config.ASGATConfig, config.ASGATDeepConfig]
    others = sorted(
        (cls for cls in _subclasses(config.TrainConfig) if cls not in shared), key=lambda cls: str(cls.__name__)
    )
    return "\n\n".join(_settings(cls) for cls in [*shared, *others])


def _subclasses(cls: type) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _settings(cls: Any) -> str:
    above = cls.__bases__[0]
    inherited = {} if above is object else {field.name: field for field in dataclasses.fields(above)}
    hints = typing.get_type_hints(cls)
    rows = [
        (f"`{field.name}`", _value(field.default), _values(hints[field.name], field.metadata), field.metadata["group"],
         _escape(field.metadata["help"]))
        for field in dataclasses.fields(cls)
        if inherited.get(field.name) is not field
    ]  # fmt: skip
    sentences = [_escape((cls.__doc__ or "").strip())]
    if above is not object:
        sentences.append(f"In addition to those of {_link(above)}.")
    if models := ", ".join(f"`{name}`" for name in _models_with(cls)):
        sentences.append(f"Models: {models}.")
    head = [f"## {cls.__name__}", " ".join(sentences)]
    headings = ("setting", "default", "values", "group", "meaning")
    return "\n\n".join([*head, _table(headings, rows)] if rows else head)


def _link(cls: type) -> str:
    return f"[{cls.__name__}](#{cls.__name__.lower()})"


def _models_with(cls: type) -> list[str]:
    from asgat.nn.registry import MODELS

    return [name for name, spec in MODELS.items() if spec.config is cls]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    return "`none`" if value is None else f"`{value}`"


def _values(hint: Any, bounds: Any) -> str:
    """The allowed values of a setting: its choices, or its type and range."""
    from asgat.config import LARGEST, POSITIVE

    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    if typing.get_origin(hint) is types.UnionType:  # the only unions are with None
        return f"{_values(typing.get_args(hint)[0], bounds)}, or `none`"
    kind = {int: "whole number", float: "number", bool: "`true`, `false`"}.get(hint, "whole numbers")
    low, high, below = (bounds.get(key) for key in ("low", "high", "below"))
    limits = [] if low is None else ["above 0" if low == POSITIVE else f"from {low:g}"]
    limits += [f"to {high:,}"] if high is not None and high < LARGEST else []
    limits += [f"below {below:g}"] if below is not None else []
    return " ".join([kind, *limits])


def models() -> str:
    """The table of ``asgat models``."""
    from asgat.nn.registry import COST_LETTERS, MODELS

    rows = []
    for name, spec in MODELS.items():
        rows.append((f"`{name}`", *map(_escape, (spec.summary, spec.reference, spec.cost)), _link(spec.config)))
    table = _table(("model", "what it is", "reference", "cost of a layer", "settings"), rows)
    return f"{table}\n\nCosts: {_escape(COST_LETTERS)}."


def datasets() -> str:
    """The data sets with their published statistics."""
    from asgat.data import DATASETS

    rows = [
        (f"`{name}`", f"{info.statistics.nodes:,}", f"{info.statistics.entries:,}", f"{info.statistics.features:,}",
         str(info.statistics.classes), f"{info.statistics.beta:.3f}", _escape(info.description))
        for name, info in DATASETS.items()
    ]  # fmt: skip
    return _table(("name", "nodes", "entries", "features", "classes", "β", "what it is"), rows)


def root_page(name: str) -> str:
    """A page of the repository's root, with its links as they are in ``docs/``."""
    text = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md", "](contributing.md")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|", *lines])


def _escape(text: str) -> str:
    """Text as Markdown: rich's markup removed, Markdown's signs kept from having a meaning, options in one piece."""
    text = re.sub(r"\[/?(?:bold|dim|italic|red|green|yellow|cyan)\w*\]|\[/\]", "", text)
    text = re.sub(r"([*_<$\[\]\\])", r"\\\1", text)
    text = re.sub(r"(`[^`]*`)", lambda code: code[0].replace("\\", ""), text)
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", text)


PARTS: dict[str, Callable[[], str]] = {
    "changelog": partial(root_page, "CHANGELOG.md"),
    "commands": commands,
    "contributing": partial(root_page, "CONTRIBUTING.md"),
    "datasets": datasets,
    "models": models,
    "settings": settings,
}
