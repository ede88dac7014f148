"""Options that several commands have, each in the place of a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

Options: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Options by parameter: what each is, and its default."""

Command: TypeAlias = Callable[..., None]


def in_place_of(name: str, options: Options, value_of: Callable[..., Any]) -> Callable[[Command], Command]:
    """Gives a command options in the place of its parameter ``name``, whose value is made from theirs."""

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
    """Options as parameters."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=usual)
        for name, (kind, usual) in options.items()
    ]


def with_parameters(command: Command, shown: Iterable[Parameter]) -> Command:
    """The same command, after its parameters were replaced by those that typer is to see."""
    named = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in shown]
    vars(command)["__signature__"] = Signature(named)
    command.__annotations__ = {one.name: one.annotation for one in named}
    return command
