"""What a stream says about its event time: how late events may be, when traces without events end, when it is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from streams.errors import DeclarationError
from streams.showing import shown

Late: TypeAlias = Literal["dead_letter", "drop", "process"]

MOST_SECONDS = 315_360_000_000  # ten thousand years: beyond all times that can be written

_SECOND_US = 1_000_000
_DURATIONS: Mapping[str, str] = {
    "lateness": "how much older than the newest event an event may be",
    "idle_timeout": "how long a trace may be without an event",
    "quiet_after": "after how long without events the wall clock moves time on",
}


class TimedStream(Protocol):
    """The members of ``StreamDeclaration`` that are about event time."""

    @property
    def name(self) -> str:
        """The stream."""
        ...

    @property
    def lateness(self) -> float | None:
        """Seconds."""
        ...

    @property
    def late(self) -> Late:
        """What to do with late events."""
        ...

    @property
    def idle_timeout(self) -> float | None:
        """Seconds of event time."""
        ...

    @property
    def quiet_after(self) -> float | None:
        """Seconds of the wall clock."""
        ...


def check_event_time(stream: TimedStream) -> None:
    """Refuse durations that are none, and a policy for late events where no event is ever late.

    Raises:
        DeclarationError: Names the member.
    """
    for name, meaning in _DURATIONS.items():
        value: float | None = getattr(stream, name)
        if value is None:
            continue
        least = 0 if name == "lateness" else 1
        if not isfinite(value) or not least <= round(value * _SECOND_US) <= MOST_SECONDS * _SECOND_US:
            bound = "0 or more" if name == "lateness" else "at least a microsecond"
            raise DeclarationError(
                f"stream {stream.name!r}: {name} is {value!r} seconds; it says {meaning}, and must be {bound} and "
                f"at most {MOST_SECONDS:,} seconds",
                field=name,
            )
    if stream.late != "dead_letter" and stream.lateness is None:
        raise DeclarationError(
            f"stream {stream.name!r}: late is {stream.late!r}, but without lateness no event is late; add "
            f"'lateness', the seconds that events may be late, or 0",
            field="late",
        )


def microseconds(seconds: float | None) -> int | None:
    """A duration in microseconds."""
    return None if seconds is None else round(seconds * _SECOND_US)


def event_time_json(stream: TimedStream) -> dict[str, Any]:
    """The members that are set, as plain JSON."""
    found = {name: value for name in _DURATIONS if (value := getattr(stream, name)) is not None}
    return found if stream.late == "dead_letter" else {**found, "late": stream.late}


def event_time_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a stream declaration that are about event time, read from plain JSON.

    Raises:
        DeclarationError: A member is of the wrong type.
    """
    late = value.get("late", "dead_letter")
    if late not in get_args(Late):
        raise DeclarationError(
            f"'late' of a stream declaration is {shown(late)}; write {' or '.join(get_args(Late))}", field="late"
        )
    return {**{name: _seconds(value, name) for name in _DURATIONS}, "late": cast("Late", late)}


def _seconds(value: Mapping[str, Any], name: str) -> float | None:
    found = value.get(name)
    if found is None or (isinstance(found, int | float) and not isinstance(found, bool)):
        return found
    raise DeclarationError(f"{name!r} of a stream declaration is a number of seconds, got {shown(found)}", field=name)
