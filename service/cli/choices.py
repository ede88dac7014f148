"""Choices that several commands have as options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from streams import AUTO, Ties

NONE = "none"
AUTO_FORM = "auto[:MEMBER=NUMBER,...]"


SuppressFor = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Suppress alerts that follow another one of their group within this event time, such as '1 h'.",
    ),
]
SuppressBy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="With --suppress-for: column of RETURN, or the key, whose values form groups (default: one group). "
        "Repeatable.",
    ),
]


def suppress_of(lasts: str | None, by: list[str] | None) -> dict[str, Any] | None:
    """The member ``suppress`` of a pattern from the options."""
    if lasts is None and by:
        raise typer.BadParameter("give --suppress-for, too", param_hint="--suppress-by")
    return None if lasts is None else {"by": by or [], "for": lasts}


class OutputFormat(StrEnum):
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


class TieOrder(StrEnum):
    """How events with equal timestamps are ordered."""

    LOG = "log"
    SIMULTANEOUS = "simultaneous"

    @property
    def ties(self) -> Ties:
        """The value of a stream's declaration."""
        return "simultaneous" if self is TieOrder.SIMULTANEOUS else "log"


class LatePolicy(StrEnum):
    """What to do with events that are too late."""

    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    PROCESS = "process"


def read_lateness(text: str) -> float | str | dict[str, Any] | None:
    """A lateness as the API takes it: seconds, none, ``auto``, or ``auto:at_most=30,start=5``."""
    word, _, members = text.partition(":")
    if word != AUTO:
        return seconds_of("lateness", text, "a number of seconds, none, or auto, such as auto:at_most=600,start=5")
    found = {}
    for one in filter(None, members.split(",")):
        name, _, number = one.partition("=")
        found[name.strip()] = seconds_of(f"{name.strip()} of auto", number.strip(), "a number")
    return {AUTO: found} if found else AUTO


def seconds_of(member: str, text: str, wanted: str = "a number of seconds, or none") -> float | None:
    """A duration that is given, or None for none."""
    if text == NONE:
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{member} is {text!r}; write {wanted}") from None
