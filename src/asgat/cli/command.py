"""Commands that refuse an option given twice."""

from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from asgat.errors import AsgatError, listed, shown

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """An option that takes one value may be given once: Typer would silently take the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # of shell completion
            self._check_given_once(ctx, args)
        return super().parse_args(ctx, args)

    def _check_given_once(self, ctx: Any, args: list[str]) -> None:
        collecting, single = copy(self), list[Any]()
        collecting.params = []
        for parameter in self.params:
            option: Any = copy(parameter)
            if option.param_type_name == "option" and not option.multiple and not option.is_flag:
                option.multiple = True
                single.append(option)
            collecting.params.append(option)
        given = collecting.make_parser(ctx).parse_args(args=[*args])[0]
        for option in single:
            values = given.get(option.name, ())
            if len(values) > 1:
                name, texts = max(option.opts, key=len), listed([shown(value) for value in values])
                raise AsgatError(f"{name} takes one value, but is given {len(values)}: {texts}. Give it once.")


class App(typer.Typer):
    """An app all of whose commands are of this kind."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[Function], Function]:
        return super().command(*arguments, cls=Command, **options)
