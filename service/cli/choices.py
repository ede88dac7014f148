"""Conversion of options that several commands share: suppression, incidents, lateness, durations."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

import typer

from streams import AUTO, seconds_in

NONE = "none"
AUTO_FORM = "auto[:MEMBER=NUMBER,...]"


Suppress = Annotated[
    str | None,
    typer.Option(
        metavar="'DURATION by NAME, ...'",
        help="After an alert, suppress further alerts of its group for this long, in event time: '1 h by customer'. "
        "Columns of RETURN, or the key, after 'by' form the groups; without 'by', all alerts are one group.",
    ),
]


def suppress_of(text: str | None) -> dict[str, Any] | None:
    """Convert the option ``--suppress`` to the pattern's member ``suppress``."""
    if text is None:
        return None
    lasts, by = _grouped(text)
    return {"by": by, "for": lasts}


def _grouped(text: str | None) -> tuple[str | None, list[str]]:
    head, _, by = (text or "").partition(" by ")
    return None if text is None else head, [name.strip() for name in by.split(",") if name.strip()]


Incident = Annotated[
    str | None,
    typer.Option(
        metavar="'DURATION by NAME, ...'",
        help="Collect the alerts of each group in an incident, which closes after this event time without an alert. "
        "'2 h by customer': a group for each customer. Without 'by', the groups are those of --suppress.",
    ),
]
Resolves = Annotated[
    str | None,
    typer.Option(
        metavar="'PATTERN by NAME, ...'",
        help="Each alert closes the open incident of another pattern whose alerts have equal values. "
        "'declined by customer': of the pattern 'declined', with an equal customer.",
    ),
]


def quiet_of(suppress: str | None, incident: str | None, resolves: str | None) -> dict[str, Any]:
    """Convert the options ``--suppress``, ``--incident`` and ``--resolves`` to members of a pattern."""
    first, by = _grouped(incident)
    name, values = _grouped(resolves)
    return {
        "suppress": suppress_of(suppress),
        "incident": first and {"close_after": first, **({"by": by} if by else {})},
        "resolves": name and {"pattern": name, "by": values},
    }


def quiet_changes(**options: str | None) -> dict[str, Any]:
    """Convert the given ones of the options of ``quiet_of`` to changes of a pattern. ``none`` removes a member."""
    members = quiet_of(**{name: None if text == NONE else text for name, text in options.items()})
    return {name: members[name] for name, text in options.items() if text is not None}


OutputFormat: TypeAlias = Literal["text", "json"]
"""How a command prints its result."""


def read_lateness(text: str) -> float | str | dict[str, Any] | None:
    """Convert the option ``--lateness`` to its API form: a duration, none, ``auto``, or ``auto:at_most=30,start=5``."""
    word, _, members = text.partition(":")
    if word != AUTO:
        return seconds_of("lateness", text, "5 min, seconds, none, or auto, such as auto:at_most=10min,start=5")
    settings = {}
    for member in filter(None, members.split(",")):
        name, _, number = member.partition("=")
        settings[name.strip()] = seconds_of(f"{name.strip()} of auto", number.strip(), "5 min, or seconds")
    return {AUTO: settings} if settings else AUTO


def as_seconds(duration: str | float) -> float:
    """Convert a duration option, such as ``5 min`` or a number, to seconds."""
    try:
        seconds = float(seconds_in(duration))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise typer.BadParameter(f"{duration!r} is not a duration; write one such as 5 min, or a number of seconds")
    return seconds


def seconds_of(member: str, text: str, form: str = "5 min, seconds, or none") -> float | None:
    """Parse a duration to seconds, or to None for the text ``none``. Errors name the option and the valid forms."""
    if text == NONE:
        return None
    try:
        return float(seconds_in(text))
    except ValueError:
        raise typer.BadParameter(f"{member} is {text!r}; write {form}") from None
