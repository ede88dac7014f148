"""Options that several commands share, in place of one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

Options: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Annotation and default of each option, by parameter."""

Command: TypeAlias = Callable[..., None]


def in_place_of(name: str, options: Options, value_of: Callable[..., Any]) -> Callable[[Command], Command]:
    """Decorator: replace the parameter ``name`` by options; ``value_of`` makes its value from theirs."""

    def extended(command: Command) -> Command:
        own = signature(command, eval_str=True).parameters

        @wraps(command)
        def run(**values: Any) -> None:
            chosen = {one: values.pop(one) for one in options}
            command(**values, **{name: value_of(**chosen)})

        shown = [one for known, kept in own.items() for one in (parameters(options) if known == name else [kept])]
        return with_parameters(run, shown)

    return extended


def parameters(options: Options) -> list[Parameter]:
    """Convert options to parameters of a signature."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=usual)
        for name, (kind, usual) in options.items()
    ]


def with_parameters(command: Command, shown: Iterable[Parameter]) -> Command:
    """Give a command the parameters that typer shall see."""
    named = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in shown]
    vars(command)["__signature__"] = Signature(named)
    command.__annotations__ = {one.name: one.annotation for one in named}
    return command
