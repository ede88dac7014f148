"""Replaces a parameter of a command by options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

Options: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The annotation and default of each option, by the parameter's name."""

Command: TypeAlias = Callable[..., None]


def in_place_of(name: str, options: Options, value_of: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return a decorator that replaces the parameter ``name`` by options.

    ``value_of`` computes the argument for the parameter from the values of the options.
    """

    def extended(command: Command) -> Command:
        own_parameters = signature(command, eval_str=True).parameters

        @wraps(command)
        def run(**values: Any) -> None:
            option_values = {option: values.pop(option) for option in options}
            command(**values, **{name: value_of(**option_values)})

        visible = [
            parameter
            for own_name, own_parameter in own_parameters.items()
            for parameter in (parameters(options) if own_name == name else [own_parameter])
        ]
        return with_parameters(run, visible)

    return extended


def parameters(options: Options) -> list[Parameter]:
    """Convert options to parameters of a signature."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=usual)
        for name, (kind, usual) in options.items()
    ]


def with_parameters(command: Command, visible: Iterable[Parameter]) -> Command:
    """Set the signature from which typer reads the parameters of a command."""
    keyword_only = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in visible]
    vars(command)["__signature__"] = Signature(keyword_only)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only}
    return command
