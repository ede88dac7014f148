"""Faster commands and groups for typer: values are converted directly, and the help shows plain metavars.

Typer converts every value with pydantic, even absent values, which takes a tenth of a command's start-up time. Here
text, paths, choices and defaults are converted directly. Typer converts all other values and raises every error.

An option that takes one value must not be repeated.

An option without its own metavar shows FILE for a path, N for a whole number, SHARE for a number from 0 to 1, and
nothing for a flag. Any other option shows its name in capitals. Units and forms (DURATION, NAME=PATH) are given with
the option. Arguments are shown in capitals.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_CLOSED_PIPE = 128 + 13  # the exit status that shells show for SIGPIPE, because 1 means a negative result


class PlainGroup(TyperGroup):
    """A group of commands whose own options are converted without pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the group's options, including the options for shell completion."""
        return converted_directly(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run a command. If the reader closes the pipe, as ``head`` does, end with the exit status of SIGPIPE."""
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards the remaining buffered output
            raise typer.Exit(_CLOSED_PIPE) from None
        return outcome


def converted_directly(params: list[Any]) -> list[Any]:
    """Replace the conversion of parameters by ``_DirectConversion``, and return the parameters."""
    for param in params:
        if not isinstance(param.get_runtime_param, _DirectConversion):
            param.get_runtime_param = _DirectConversion(param.get_runtime_param)
    return params


class _DirectConversion:
    """A faster converter of a parameter's values, with the same results as typer's converter.

    Typer expects a factory of converters. Therefore a call of this object returns the object.
    """

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def __call__(self) -> _DirectConversion:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        descriptor = param.type_descriptor
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if descriptor.is_list and isinstance(value, list | tuple):
            (kind,) = get_args(descriptor.annotation)
            values = [_direct(element, kind) for element in value]
            if None not in values:
                return values
        elif (direct := _direct(value, descriptor.annotation)) is not None:
            return direct
        try:
            return self._typers().coerce(value, param=param, ctx=ctx)
        except typer.BadParameter as error:
            if isinstance(value, str) and value not in error.message:
                error.message = f"{error.message}, got {value!r}"
            raise


def _direct(value: Any, kind: Any) -> Any:
    """Convert a value to the type of its parameter. Return None if typer must convert or refuse the value."""
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    if not isinstance(kind, type):
        return None
    if isinstance(value, kind):
        return value
    if issubclass(kind, Enum):
        return next((choice for choice in kind if choice.value == value), None)
    if issubclass(kind, Path) and (os.access(value, os.R_OK) or not kind(value).exists()):
        return kind(value)
    return None


_BY_TYPE = {bool: "", Path: "FILE", int: "N"}


class PlainCommand(TyperCommand):
    """A command whose help has placeholders such as FILE. It refuses to take two values for a single-valued option."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for param in self.params:
            if isinstance(param, TyperArgument) and param.metavar is None:
                param.metavar = str(param.name).upper()
            if isinstance(param, TyperOption) and param.metavar is None and not param.type_descriptor.is_choice:
                param.metavar = _metavar_of(param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and return the rest.

        Raises ``BadParameter`` if a single-valued option is given twice.
        """
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for param, count in Counter(order).items():
            if count > 1 and isinstance(param, TyperOption) and _takes_one(param):
                raise typer.BadParameter("given twice; it takes one value", ctx=ctx, param=param)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments, including ``--help``, which gets no metavar."""
        params = converted_directly(super().get_params(ctx))
        for param in params:
            if param.name == "help":
                param.metavar = ""
        return params


def make_plain(app: typer.Typer) -> None:
    """Make every command of a group a ``PlainCommand``."""
    for command in _commands_of(app):
        command.cls = PlainCommand


def _commands_of(app: typer.Typer) -> Iterator[typer.models.CommandInfo]:
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands_of(group.typer_instance)


def _takes_one(option: TyperOption) -> bool:
    """Return whether click would silently keep only the last value of a repeated option."""
    return not option.multiple and not option.count and (not option.is_flag or bool(option.secondary_opts))


def _metavar_of(option: TyperOption) -> str:
    descriptor = option.type_descriptor
    if (option.min, option.max) == (0, 1):
        return "SHARE"
    kind = Path if Path in (descriptor.annotation, *get_args(descriptor.annotation)) else descriptor.annotation
    return _BY_TYPE.get(kind, option.opts[-1].lstrip("-").replace("-", "_").upper())
