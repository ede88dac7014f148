"""Suppression of alerts: members of a pattern's document, groups of its alerts, and the last alert of each group.

Alerts of a pattern with ``suppress`` or ``incident`` are sent to an inner stream, where an operator of the kind
``suppression`` processes them (ADR 72, ADR 75). Alerts of a pattern with ``resolves`` are sent to the inner stream of
the pattern whose incidents they close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson

from nfa import Attribute, Call, Expression
from shards.errors import OperatorRefused
from shards.kinds.patterns.routing import RoutedPattern
from streams import NEVER_US, duration_of

INCIDENT = "incident"
RESOLVES = "resolves"
_SUPPRESS = "suppress"
_INT64 = 2.0**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """The rules by which alerts of a pattern are suppressed, form incidents, or close incidents.

    Attributes:
        by: Names of columns of RETURN, or names of the key. Their values form the group of an alert. If there are no
            names, all alerts are in one group.
        lasts_us: How long an emitted alert suppresses later alerts of its group. 0 suppresses none.
        is_rekeyed: Whether the alerts of a group may have different keys.
        closes_after_us: Time without alerts of a group after which its incident closes. None means no incidents.
    """

    by: tuple[str, ...]
    lasts_us: int
    is_rekeyed: bool
    closes_after_us: int | None = None
    resolves: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Convert the JSON object that ``read_quiet`` returns."""
        return cls(
            by=tuple(value["by"]),
            lasts_us=duration_of(value["for"]) or 0 if "for" in value else 0,
            is_rekeyed=value["is_rekeyed"],
            closes_after_us=duration_of(value[INCIDENT]["close_after"]) if INCIDENT in value else None,
            resolves=value.get(RESOLVES, ""),
        )

    @property
    def stays(self) -> bool:
        """Whether every alert is reported at once, and the place of its group only receives a copy (``resolves``)."""
        return bool(self.resolves)

    def group_of(self, alert: Mapping[str, Any]) -> str:
        """Return the group of an alert as JSON text.

        The group is a list of the values of ``by``. The key is in front, unless alerts are re-keyed.
        """
        returns, key = alert["returns"], alert["key"]
        values = [_as_integer(returns.get(name, key)) for name in self.by]
        return orjson.dumps(values if self.is_rekeyed else [key, *values]).decode()


def _as_integer(value: Any) -> Any:
    """Convert a whole number to an integer, so that 1.0 and 1 form the same group."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _INT64 else value


class LastAlerts:
    """The last emitted alert of each group. It is retained as long as it suppresses later alerts of the group."""

    def __init__(self, lasts_us: int) -> None:
        self._lasts_us = lasts_us
        self._last: dict[str, tuple[int, str, int]] = {}  # end of suppression, alert id, hashed key; the oldest first
        self._now_us = NEVER_US

    def __len__(self) -> int:
        return len(self._last)

    def suppressor(self, group: str, time_us: int, identity: str, key_hash: int = 0) -> str | None:
        """Return the id of the earlier alert that suppresses an alert of ``group``, or None if the alert is emitted.

        An emitted alert suppresses later alerts of its group from now on. ``key_hash`` is the hashed key of the alert
        at its place.
        """
        last, at_us = self._last.get(group), max(time_us, self._now_us)
        if last is not None and at_us < last[0]:
            return last[1]
        self._last.pop(group, None)  # inserted again below, so that the oldest remains first
        self._last[group] = at_us + self._lasts_us, identity, key_hash
        return None

    def expire(self, now_us: int) -> None:
        """Advance time: drop the groups whose last alerts no longer suppress later ones."""
        self._now_us = max(self._now_us, now_us)
        while self._last and self._last[first := next(iter(self._last))][0] <= self._now_us:
            del self._last[first]

    def key_hashes(self) -> list[int]:
        """Return the hashed key of each group."""
        return [key_hash for *_, key_hash in self._last.values()]

    def keep(self, stays: list[bool]) -> None:
        """Keep the groups whose flag in ``stays`` is true. The flags are in the order of ``key_hashes``."""
        self._last = {name: last for (name, last), stay in zip(self._last.items(), stays, strict=True) if stay}

    def to_json(self) -> list[Any]:
        return [self._now_us, [*self._last.items()]]

    def load(self, value: list[Any]) -> None:
        self._now_us, groups = value
        self._last = {group: (end_us, identity, key_hash) for group, (end_us, identity, key_hash) in groups}


def read_quiet(document: Mapping[str, Any], routed: RoutedPattern) -> dict[str, Any] | None:
    """Read ``suppress``, ``incident`` and ``resolves`` of a document, and return them as one JSON object.

    Return None if the document has none of them. Alerts with incidents are always re-keyed by their group, so that
    alerts of other patterns reach the same place.

    Raises:
        OperatorRefused: A member has a wrong form, names a value that alerts lack, or contradicts another member.
    """
    suppression = read_suppression(document.get(_SUPPRESS), routed)
    incident = _members(INCIDENT, document.get(INCIDENT), "close_after", "{by: [customer], close_after: 2 h}")
    resolves = _members(RESOLVES, document.get(RESOLVES), "pattern", "{pattern: declined, by: [customer]}")
    if resolves is not None:
        if suppression is not None or incident is not None:
            raise _refused("a pattern that resolves incidents has neither suppress nor incident", RESOLVES)
        if not isinstance(resolves["pattern"], str) or not resolves["pattern"]:
            raise _refused("pattern is the name of the pattern whose incidents are closed", RESOLVES)
        by, _ = _groups(RESOLVES, resolves, routed)
        return {"by": by, "is_rekeyed": True, RESOLVES: resolves["pattern"]}
    if incident is None:
        return suppression
    _require_duration(INCIDENT, "close_after", incident)
    by, _ = _groups(INCIDENT, incident if "by" in incident else suppression or {}, routed)
    if suppression is not None and suppression["by"] != by:
        raise _refused("by differs from that of suppress; leave it out, since both have the same groups", INCIDENT)
    rules = {"by": by, "is_rekeyed": True, INCIDENT: {"close_after": incident["close_after"]}}
    return rules if suppression is None else {**rules, "for": suppression["for"]}


def read_suppression(value: object, routed: RoutedPattern) -> dict[str, Any] | None:
    """Read the member ``suppress`` of a pattern, and return it as plain JSON. Return None if the member is missing.

    The result also says whether alerts are re-keyed by their group.
    """
    suppress = _members(_SUPPRESS, value, "for", "{by: [customer], for: 1 h}")
    if suppress is None:
        return None
    by, has_key = _groups(_SUPPRESS, suppress, routed)
    _require_duration(_SUPPRESS, "for", suppress)
    return {"by": by, "for": suppress["for"], "is_rekeyed": not has_key}


def suppressed_only(suppression: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the rules without incidents, for backtests and dry runs. Return None if these rules suppress no alert."""
    if suppression is None or "for" not in suppression:
        return None
    return {name: value for name, value in suppression.items() if name != INCIDENT}


def _members(field: str, value: object, needed: str, example: str) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or needed not in value:
        raise _refused(f"it has no {needed}; write {example}", field)
    if unknown_members := sorted(map(str, set(value) - {"by", needed})):
        raise _refused(f"it has {', '.join(unknown_members)}; write {example}", field)
    return value


def _groups(field: str, value: Mapping[str, Any], routed: RoutedPattern) -> tuple[list[str], bool]:
    """Return the names whose values form the groups of alerts, and whether one of them is the key."""
    if routed.pattern.into is not None:
        raise _refused(
            f"matches of a pattern with INTO become events, not alerts; {field} belongs to a pattern on "
            f"{routed.pattern.into.stream!r}",
            field,
        )
    by = value.get("by", ())
    if not isinstance(by, list | tuple) or not all(isinstance(name, str) for name in by):
        raise _refused("by is a list of names", field)
    columns = {column.name: column.expression for column in routed.pattern.returns}
    if unknown := [name for name in by if name not in columns and name not in _key_names(routed)]:
        known_names = ", ".join(dict.fromkeys((*columns, *_key_names(routed))))
        raise _refused(
            f"by: {', '.join(unknown)} is neither a column of RETURN nor the key of the transactions; there "
            f"are {known_names}. Add RETURN … AS {unknown[0]} to the pattern",
            field,
        )
    if field != _SUPPRESS and len(set(by)) < len(by):
        raise _refused("by names a column twice", field)
    return list(by), any(name not in columns or _is_key(columns[name], routed) for name in by)


def _require_duration(field: str, member: str, value: Mapping[str, Any]) -> None:
    if not duration_of(value[member]):
        raise _refused(f"{member}: {value[member]!r} is not a duration of 1 us or more such as '1 h' or '90 s'", field)


def _key_names(routed: RoutedPattern) -> list[str]:
    declaration, route = routed.declaration, routed.route
    paths = declaration.route_paths(route) if route else (("key",), *declaration.key_paths)
    return list(dict.fromkeys(".".join(path).removeprefix("data.") for path in paths))


def _is_key(column: Expression, routed: RoutedPattern) -> bool:
    """Return whether a column of RETURN is the key itself, so that alerts with equal values in it have equal keys."""
    declaration, route = routed.declaration, routed.route
    if isinstance(column, Call):
        return column.name == "key" and not route
    key = declaration.keys[route] if route else declaration.key
    return isinstance(column, Attribute) and key == ".".join(("data", *column.path))


def _refused(message: str, field: str) -> OperatorRefused:
    return OperatorRefused(f"{field}: {message}", field=field)
