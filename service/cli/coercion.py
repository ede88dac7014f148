"""Conversion of options' values without pydantic.

Typer converts every value with pydantic, absent ones too; that takes a tenth of a command's start. Here text, paths,
choices and defaults are converted directly; everything else, and every refusal, is left to typer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup

_CLOSED_PIPE = 128 + 13  # the status that shells show for SIGPIPE; 1 is a negative result


class PlainGroup(TyperGroup):
    """A group of commands whose own options are converted directly."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the group, those for completion among them."""
        return converted_directly(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a reader that closes its pipe, as ``head`` does, ends it as it ends other programs."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not written at the end
            raise typer.Exit(_CLOSED_PIPE) from None
        return found


def converted_directly(params: list[Any]) -> list[Any]:
    """Parameters, after their conversion was replaced by ``_DirectConversion``."""
    for param in params:
        if not isinstance(param.get_runtime_param, _DirectConversion):
            param.get_runtime_param = _DirectConversion(param.get_runtime_param)
    return params


class _DirectConversion:
    """The conversion of a parameter's values, in the interface that typer expects; called, it returns itself."""

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def __call__(self) -> _DirectConversion:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter in the type of its annotation; raises what typer raises."""
        described = param.type_descriptor
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if described.is_list and isinstance(value, list | tuple):
            (kind,) = get_args(described.annotation)
            values = [_direct(one, kind) for one in value]
            if None not in values:
                return values
        elif (direct := _direct(value, described.annotation)) is not None:
            return direct
        return self._typers().coerce(value, param=param, ctx=ctx)


def _direct(value: Any, kind: Any) -> Any:
    """A value in the type of its parameter; None: typer has to convert or refuse it."""
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
