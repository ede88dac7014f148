"""Placeholders of options' values in the help, such as FILE in place of a Python type; refusal of options given twice.

An option without a metavar of its own shows FILE for a path, N for a whole number, SHARE for a number from 0 to 1,
nothing for a flag, and its name in capitals otherwise. Units and forms (DURATION, NAME=PATH) are given with the option.
Arguments are shown in capitals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from service.cli.coercion import converted_directly

_BY_TYPE = {bool: "", Path: "FILE", int: "N"}


class PlainCommand(TyperCommand):
    """A command whose options have the metavars of this module; single-valued options may be given once."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for param in self.params:
            if isinstance(param, TyperArgument) and param.metavar is None:
                param.metavar = str(param.name).upper()
            if isinstance(param, TyperOption) and param.metavar is None and not param.type_descriptor.is_choice:
                param.metavar = _metavar_of(param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and return the rest; raises ``BadParameter`` if a single-valued option is given twice."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for param, count in Counter(order).items():
            if count > 1 and isinstance(param, TyperOption) and _takes_one(param):
                raise typer.BadParameter("given twice; it takes one value", ctx=ctx, param=param)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments; ``--help`` is among them only here."""
        params = converted_directly(super().get_params(ctx))
        for param in params:
            if param.name == "help":
                param.metavar = ""
        return params


def make_plain(app: typer.Typer) -> None:
    """Let all commands of a group be plain commands."""
    for command in _commands_of(app):
        command.cls = PlainCommand


def _commands_of(app: typer.Typer) -> Iterator[typer.models.CommandInfo]:
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands_of(group.typer_instance)


def _takes_one(option: TyperOption) -> bool:
    """Whether the last of several values would silently win: for options, and for flags that can be switched off."""
    return not option.multiple and not option.count and (not option.is_flag or bool(option.secondary_opts))


def _metavar_of(option: TyperOption) -> str:
    described = option.type_descriptor
    if (option.min, option.max) == (0, 1):
        return "SHARE"
    kind = Path if Path in (described.annotation, *get_args(described.annotation)) else described.annotation
    return _BY_TYPE.get(kind, option.opts[-1].lstrip("-").replace("-", "_").upper())
