"""The event-time members of a stream declaration: bound of out-of-orderness, session gap, source idleness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from streams.errors import DeclarationError
from streams.nearest import did_you_mean
from streams.showing import shown

Late: TypeAlias = Literal["dead_letter", "drop", "process"]

AUTO = "auto"
UNLIMITED = "none"

USUAL_AHEAD_S = 6 * 3_600

MOST_SECONDS = 315_360_000_000  # ten thousand years, more than all times that can be written

_SECOND_US = 1_000_000
_DURATIONS: Mapping[str, str] = {
    "lateness": "how much older than the newest event an event may be",
    "idle_timeout": "how long a trace may be without an event",
    "quiet_after": "after how long without events the wall clock moves time on",
    "max_ahead": "how far ahead of the wall clock an event may be",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoLateness:
    """A bound of out-of-orderness that follows measured lags; durations in seconds.

    Attributes:
        at_most: The largest bound. Events with a larger lag are late in any case and do not influence the bound.
        start: The bound before the first measurement.
        late_share: The share of events that may be late; 0: the bound follows the largest lag.
    """

    at_least: float = 0.0
    at_most: float = 3_600.0
    start: float = 60.0
    late_share: float = 0.0

    @property
    def at_least_us(self) -> int:
        """``at_least`` in microseconds."""
        return round(self.at_least * _SECOND_US)

    @property
    def at_most_us(self) -> int:
        """``at_most`` in microseconds."""
        return round(self.at_most * _SECOND_US)

    @property
    def start_us(self) -> int:
        """The bound before the first measurement, in microseconds."""
        return self.within_us(round(self.start * _SECOND_US))

    def within_us(self, bound_us: int) -> int:
        """The nearest allowed bound."""
        return min(max(bound_us, self.at_least_us), self.at_most_us)

    def to_json(self) -> str | dict[str, Any]:
        """The form in documents: ``auto``, or an object with the members that differ from their defaults."""
        usual = AutoLateness()
        changed = {
            part.name: getattr(self, part.name)
            for part in fields(self)
            if getattr(self, part.name) != getattr(usual, part.name)
        }
        return {AUTO: changed} if changed else AUTO

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> AutoLateness:
        """Read the form that ``to_json`` or a person wrote; rejects unknown members, wrong types and ranges."""
        members = {} if value == AUTO else value.get(AUTO) if isinstance(value, Mapping) and len(value) == 1 else None
        if not isinstance(members, Mapping):
            raise DeclarationError(f"{_LATENESS_FORM}, got {shown(value)}", field="lateness")
        known = [part.name for part in fields(cls)]
        for name, given in members.items():
            if name not in known:
                raise DeclarationError(
                    f"'lateness': auto has no member {shown(name)}{did_you_mean(str(name), known)}; it has "
                    f"{', '.join(known)}",
                    field="lateness",
                )
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise DeclarationError(f"'lateness': {name} of auto is a number, got {shown(given)}", field="lateness")
        return cls(**members)

    def fault(self) -> str | None:
        """The fault of the members, in words; None if they are valid."""
        for name in ("at_least", "at_most", "start"):
            value = getattr(self, name)
            if not isfinite(value) or not 0 <= value <= MOST_SECONDS:
                return f"{name} of auto is {value!r} seconds; it must be 0 or more and at most {MOST_SECONDS:,} seconds"
        if self.at_least > self.at_most:
            return f"at_least of auto is {self.at_least!r} seconds, more than at_most, which is {self.at_most!r}"
        if not 0 <= self.late_share < 1:
            return f"late_share of auto is {self.late_share!r}; it is a share of events: 0 or more, and less than 1"
        return None


Lateness: TypeAlias = float | AutoLateness
"""Seconds, or a measured bound."""

MaxAhead: TypeAlias = float | Literal["none"]
"""Seconds, or no limit."""

_FROM_ZERO = ("lateness", "max_ahead")
_LATENESS_FORM = (
    "'lateness' of a stream declaration is a number of seconds, 'auto', or an object {\"auto\": {...}} with at_least, "
    "at_most, start and late_share"
)


class TimedStream(Protocol):
    """The event-time members of ``StreamDeclaration``."""

    @property
    def name(self) -> str:
        """Name of the stream."""
        ...

    @property
    def lateness(self) -> Lateness | None:
        """Seconds, or a measured bound."""
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

    @property
    def max_ahead(self) -> MaxAhead | None:
        """Seconds ahead of the wall clock; None: the default."""
        ...


def check_event_time(stream: TimedStream) -> None:
    """Reject invalid durations, and a policy for late events on a stream where no event is ever late."""
    for name, meaning in _DURATIONS.items():
        value: Lateness | MaxAhead | None = getattr(stream, name)
        if value is None or value == UNLIMITED:
            continue
        if isinstance(value, AutoLateness):
            if fault := value.fault():
                raise DeclarationError(f"stream {stream.name!r}: lateness: {fault}", field=name)
            continue
        least = 0 if name in _FROM_ZERO else 1
        if (
            isinstance(value, str)
            or not isfinite(value)
            or not -1 <= value <= MOST_SECONDS
            or round(value * _SECOND_US) < least
        ):
            bound = "0 or more" if name in _FROM_ZERO else "at least a microsecond"
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


def microseconds(seconds: Lateness | None) -> int | None:
    """A duration in microseconds; the initial bound of a measured lateness."""
    if isinstance(seconds, AutoLateness):
        return seconds.start_us
    return None if seconds is None else round(seconds * _SECOND_US)


def event_time_json(stream: TimedStream) -> dict[str, Any]:
    """The event-time members that are set, as plain JSON."""
    found = {
        name: value.to_json() if isinstance(value, AutoLateness) else value
        for name in _DURATIONS
        if (value := getattr(stream, name)) is not None
    }
    return found if stream.late == "dead_letter" else {**found, "late": stream.late}


def event_time_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """Read the event-time members of a stream declaration from plain JSON."""
    late = value.get("late", "dead_letter")
    if late not in get_args(Late):
        raise DeclarationError(
            f"'late' of a stream declaration is {shown(late)}; write {' or '.join(get_args(Late))}", field="late"
        )
    durations = {
        name: UNLIMITED if name == "max_ahead" and value.get(name) == UNLIMITED else _seconds(value, name)
        for name in _DURATIONS
        if name != "lateness"
    }
    return {**durations, "lateness": lateness_of(value.get("lateness")), "late": cast("Late", late)}


def lateness_of(value: object) -> Lateness | None:
    """Read a lateness from plain JSON: a number of seconds, or ``auto``, with or without members."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if isinstance(value, Mapping | str):
        return AutoLateness.from_json(value)
    raise DeclarationError(f"{_LATENESS_FORM}, got {shown(value)}", field="lateness")


def _seconds(value: Mapping[str, Any], name: str) -> float | None:
    found = value.get(name)
    if found is None or (isinstance(found, int | float) and not isinstance(found, bool)):
        return found
    raise DeclarationError(f"{name!r} of a stream declaration is a number of seconds, got {shown(found)}", field=name)
