"""The event-time members of a stream declaration: bound of out-of-orderness, session gap, source idleness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, TypeAlias, cast, get_args

from streams.durations import seconds_in
from streams.errors import DeclarationError
from streams.nearest import did_you_mean
from streams.showing import shown

Late: TypeAlias = Literal["dead_letter", "drop", "process"]

AUTO = "auto"
UNLIMITED = "none"

USUAL_AHEAD_S = 6 * 3_600

MOST_SECONDS = 315_360_000_000  # ten thousand years, more than the range of all valid times

_SECOND_US = 1_000_000
_DURATIONS: Mapping[str, str] = {
    "lateness": "how much older than the newest event an event may be",
    "idle_timeout": "how long a trace may be without an event",
    "quiet_after": "after how long without events the wall clock moves time on",
    "max_ahead": "how far ahead of the wall clock an event may be",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoLateness:
    """The rules of a bound of out-of-orderness that follows measured lags (``lateness: auto``). In seconds.

    Attributes:
        at_least: The smallest bound.
        at_most: The largest bound. Events with a larger lag are always late, and do not influence the bound.
        start: The bound before the first measurement.
        late_share: The share of events that may be late. If it is 0, the bound follows the largest lag.
    """

    at_least: float = 0.0
    at_most: float = 3_600.0
    start: float = 60.0
    late_share: float = 0.0

    @property
    def at_least_us(self) -> int:
        return round(self.at_least * _SECOND_US)

    @property
    def at_most_us(self) -> int:
        return round(self.at_most * _SECOND_US)

    @property
    def start_us(self) -> int:
        """The bound before the first measurement, in microseconds."""
        return self.within_us(round(self.start * _SECOND_US))

    def within_us(self, bound_us: int) -> int:
        """Return ``bound_us``, limited to the range from ``at_least`` to ``at_most``."""
        return min(max(bound_us, self.at_least_us), self.at_most_us)

    def to_json(self) -> str | dict[str, Any]:
        """Return the rules as in documents: ``auto``, or an object of the members that differ from their defaults."""
        usual = AutoLateness()
        changed = {
            part.name: getattr(self, part.name)
            for part in fields(self)
            if getattr(self, part.name) != getattr(usual, part.name)
        }
        return {AUTO: changed} if changed else AUTO

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> AutoLateness:
        """Read the rules from the form that ``to_json`` returns. Reject unknown members and wrong types.

        Ranges are not checked.
        """
        members = {} if value == AUTO else value.get(AUTO) if isinstance(value, Mapping) and len(value) == 1 else None
        if not isinstance(members, Mapping):
            raise DeclarationError(f"{_LATENESS_FORM}, got {shown(value)}", field="lateness")
        names = [part.name for part in fields(cls)]
        members = {name: seconds_in(setting) for name, setting in members.items()}
        for name, setting in members.items():
            if name not in names:
                raise DeclarationError(
                    f"'lateness': auto has no member {shown(name)}{did_you_mean(str(name), names)}; it has "
                    f"{', '.join(names)}",
                    field="lateness",
                )
            if isinstance(setting, bool) or not isinstance(setting, int | float):
                raise DeclarationError(
                    f"'lateness': {name} of auto is a number, got {shown(setting)}", field="lateness"
                )
        return cls(**members)

    def fault(self) -> str | None:
        """Return the fault of the members in words, or None if they are valid."""
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
"""A bound of out-of-orderness: seconds, or a bound that is measured."""

MaxAhead: TypeAlias = float | Literal["none"]
"""The most seconds that an event may be ahead of the clock, or no limit."""

_FROM_ZERO = ("lateness", "max_ahead")
_DURATION = "a duration such as '5 min', or a number of seconds"
_LATENESS_FORM = (
    f"'lateness' of a stream declaration is {_DURATION}, 'auto', or an object {{\"auto\": {{...}}}} with at_least, "
    "at_most, start and late_share"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStream:
    """The name and the event-time members of a stream declaration (``StreamDeclaration`` describes each of them)."""

    name: str
    lateness: Lateness | None = None
    late: Late = "dead_letter"
    idle_timeout: float | None = None
    quiet_after: float | None = None
    max_ahead: MaxAhead | None = None

    @property
    def lateness_us(self) -> int | None:
        """``lateness`` in microseconds. A measured lateness has its initial bound."""
        return microseconds(self.lateness)

    @property
    def idle_timeout_us(self) -> int | None:
        return microseconds(self.idle_timeout)

    @property
    def quiet_after_us(self) -> int | None:
        return microseconds(self.quiet_after)

    @property
    def max_ahead_us(self) -> int | None:
        """``max_ahead`` in microseconds, or None if there is no limit."""
        if isinstance(self.max_ahead, str):
            return None
        return microseconds(USUAL_AHEAD_S if self.max_ahead is None else self.max_ahead)


def check_event_time(stream: TimedStream) -> None:
    """Raise ``DeclarationError`` if a duration is invalid, or a policy for late events lacks a lateness."""
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
    """Convert seconds to microseconds. A measured lateness counts as its initial bound."""
    if isinstance(seconds, AutoLateness):
        return seconds.start_us
    return None if seconds is None else round(seconds * _SECOND_US)


def event_time_json(stream: TimedStream) -> dict[str, Any]:
    """Return the event-time members that a stream declares, as plain JSON."""
    members = {
        name: value.to_json() if isinstance(value, AutoLateness) else value
        for name in _DURATIONS
        if (value := getattr(stream, name)) is not None
    }
    return members if stream.late == "dead_letter" else {**members, "late": stream.late}


def event_time_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """Read the event-time members of a stream declaration from plain JSON."""
    late = value.get("late", "dead_letter")
    if late not in get_args(Late):
        raise DeclarationError(
            f"'late' of a stream declaration is {shown(late)}; write {' or '.join(get_args(Late))}", field="late"
        )
    durations = {
        name: _seconds(value, name)  # also under the API's name, because answers can be declarations
        for name in ("idle_timeout", "quiet_after")
    }
    ahead, lateness = ahead_of(value.get("max_ahead")), lateness_of(value.get("lateness"))
    return {**durations, "max_ahead": ahead, "lateness": lateness, "late": cast("Late", late)}


def lateness_of(value: object) -> Lateness | None:
    """Read a lateness from plain JSON: a duration, ``auto``, an object of its members, or the form of the API.

    ``auto`` means a measured lateness (``AutoLateness``). ``lateness_json`` returns the form of the API.
    """
    value = seconds_in(value)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if isinstance(value, Mapping) and "mode" in value:
        return _by_mode(value)
    if isinstance(value, Mapping | str):
        return AutoLateness.from_json(value)
    raise DeclarationError(f"{_LATENESS_FORM}, got {shown(value)}", field="lateness")


def lateness_json(lateness: Lateness | None) -> dict[str, Any] | None:
    """Return a lateness in the form of the API: an object with ``mode`` and the members of this mode."""
    if not isinstance(lateness, AutoLateness):
        return None if lateness is None else {"mode": "fixed", "seconds": lateness}
    return {"mode": AUTO, **{_unit_named(part.name): getattr(lateness, part.name) for part in fields(lateness)}}


def ahead_json(ahead: MaxAhead | None) -> dict[str, Any]:
    """Return ``max_ahead`` in the form of the API: an object with ``mode`` and the seconds that apply."""
    if ahead is None:
        return {"mode": "default", "seconds": USUAL_AHEAD_S}
    return {"mode": "unlimited"} if ahead == UNLIMITED else {"mode": "fixed", "seconds": ahead}


def ahead_of(value: object) -> MaxAhead | None:
    """Read ``max_ahead`` from plain JSON: a duration, ``none``, or the form of the API."""
    value = seconds_in(value)
    if isinstance(value, Mapping):
        mode, seconds = value.get("mode"), value.get("seconds")
        if mode == "default":
            return None
        value = UNLIMITED if mode == "unlimited" and seconds is None else seconds if mode == "fixed" else value
    if value is None or value == UNLIMITED or (isinstance(value, int | float) and not isinstance(value, bool)):
        return cast("MaxAhead | None", value)
    raise DeclarationError(
        f"'max_ahead' of a stream declaration is {_DURATION}, or 'none', got {shown(value)}", field="max_ahead"
    )


def _by_mode(value: Mapping[str, Any]) -> Lateness:
    members = {name: member for name, member in value.items() if member is not None and name != "mode"}
    if value["mode"] == "fixed" and members.keys() == {"seconds"}:
        return cast("Lateness", lateness_of(members["seconds"]))
    names = {_unit_named(part.name): part.name for part in fields(AutoLateness)}
    if value["mode"] == AUTO and members.keys() <= names.keys():
        return AutoLateness.from_json({AUTO: {names[name]: member for name, member in members.items()}})
    raise DeclarationError(
        '\'lateness\' of a stream declaration with a mode is {"mode": "fixed", "seconds": 5}, or {"mode": "auto"} with '
        f"{', '.join(names)}, got {shown(value)}",
        field="lateness",
    )


def _unit_named(member: str) -> str:
    return member if member == "late_share" else f"{member}_s"


def _seconds(value: Mapping[str, Any], name: str) -> float | None:
    seconds = seconds_in(value.get(name, value.get(f"{name}_s")))
    if seconds is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool)):
        return seconds
    raise DeclarationError(f"{name!r} of a stream declaration is {_DURATION}, got {shown(seconds)}", field=name)
