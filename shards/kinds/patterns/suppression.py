"""Suppression of alerts: what a pattern says about it, the groups of its alerts, and which alerts of a group pass.

The alerts of such a pattern go to an inner stream, where an operator of the kind ``suppression`` decides about them
(ADR 72).
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

_MEMBERS = ("by", "for")
_FIELD = "suppress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Which alerts of a pattern are suppressed.

    Attributes:
        by: Names of columns of RETURN, or names of the key, whose values form the group of an alert; empty: there is
            one group.
        lasts_us: Alerts that are less than this after the last alert of their group that passed are suppressed.
        is_rekeyed: Whether the alerts of a group may have different keys.
    """

    by: tuple[str, ...]
    lasts_us: int
    is_rekeyed: bool

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what ``read_suppression`` returns."""
        lasts_us = duration_of(value["for"])
        assert lasts_us, "checked when it was registered"
        return cls(by=tuple(value["by"]), lasts_us=lasts_us, is_rekeyed=value["is_rekeyed"])

    def group_of(self, alert: Mapping[str, Any]) -> str:
        """The group of an alert as JSON text: the values of ``by``, after the key unless alerts are re-keyed."""
        returns, key = alert["returns"], alert["key"]
        values = [returns.get(name, key) for name in self.by]
        return orjson.dumps(values if self.is_rekeyed else [key, *values]).decode()


class LastAlerts:
    """The last alert of each group that passed, as long as it suppresses others."""

    def __init__(self, lasts_us: int) -> None:
        self._lasts_us = lasts_us
        self._last: dict[str, tuple[int, str, int]] = {}  # end of its effect, id, hashed key; the oldest first
        self._now_us = NEVER_US

    def __len__(self) -> int:
        return len(self._last)

    def suppressor(self, group: str, time_us: int, identity: str, key_hash: int = 0) -> str | None:
        """The id of the alert by which an alert is suppressed; None: it passes, and suppresses others from now on.

        ``key_hash`` is the hashed key of the alert at its place.
        """
        last, at_us = self._last.get(group), max(time_us, self._now_us)
        if last is not None and at_us < last[0]:
            return last[1]
        self._last.pop(group, None)  # so that the oldest is the first
        self._last[group] = at_us + self._lasts_us, identity, key_hash
        return None

    def expire(self, now_us: int) -> None:
        """Pass time: drop the oldest groups while their last alerts suppress no later ones."""
        self._now_us = max(self._now_us, now_us)
        while self._last and self._last[first := next(iter(self._last))][0] <= self._now_us:
            del self._last[first]

    def key_hashes(self) -> list[int]:
        """The hashed key of each group."""
        return [key_hash for *_, key_hash in self._last.values()]

    def keep(self, stays: list[bool]) -> None:
        """Drop groups; ``stays`` is in the order of ``key_hashes``."""
        self._last = {name: last for (name, last), stay in zip(self._last.items(), stays, strict=True) if stay}

    def to_json(self) -> list[Any]:
        """As plain JSON."""
        return [self._now_us, [*self._last.items()]]

    def load(self, value: list[Any]) -> None:
        """Read the JSON form of ``to_json``."""
        self._now_us, found = value
        self._last = {group: (end_us, identity, key_hash) for group, (end_us, identity, key_hash) in found}


def read_suppression(value: object, routed: RoutedPattern) -> dict[str, Any] | None:
    """The member ``suppress`` of a pattern, as plain JSON that says whether alerts are re-keyed; None: it has none.

    Raises:
        OperatorRefused: It has another form, names what alerts do not have, or the pattern raises no alerts.
    """
    if value is None:
        return None
    if (
        not isinstance(value, Mapping)
        or "for" not in value
        or (strangers := sorted(map(str, set(value) - {*_MEMBERS})))
    ):
        what = f"has {', '.join(strangers)}" if isinstance(value, Mapping) and "for" in value else "has no for"
        raise _refused(f"it {what}; write {{by: [customer], for: 1 h}}")
    if routed.pattern.into is not None:
        raise _refused(
            "matches of a pattern with INTO become events, not alerts; suppress alerts of a pattern on "
            f"{routed.pattern.into.stream!r}"
        )
    by = value.get("by", ())
    if not isinstance(by, list | tuple) or not all(isinstance(name, str) for name in by):
        raise _refused("by is a list of names")
    if not duration_of(value["for"]):
        raise _refused(f"for: {value['for']!r} is not a duration of 1 us or more such as '1 h' or '90 s'")
    columns = {one.name: one.expression for one in routed.pattern.returns}
    if unknown := [name for name in by if name not in columns and name not in _key_names(routed)]:
        known = ", ".join(dict.fromkeys((*columns, *_key_names(routed))))
        raise _refused(
            f"by: {', '.join(unknown)} is neither a column of RETURN nor the key of the transactions; there "
            f"are {known}. Add RETURN … AS {unknown[0]} to the pattern"
        )
    has_key = any(name not in columns or _is_key(columns[name], routed) for name in by)
    return {"by": list(by), "for": value["for"], "is_rekeyed": not has_key}


def _key_names(routed: RoutedPattern) -> list[str]:
    """The names of the key by which a pattern is matched."""
    declaration, route = routed.declaration, routed.route
    paths = declaration.route_paths(route) if route else (("key",), *declaration.key_paths)
    return list(dict.fromkeys(".".join(path).removeprefix("data.") for path in paths))


def _is_key(column: Expression, routed: RoutedPattern) -> bool:
    """Whether a column of RETURN is just the key, so that alerts with equal values have equal keys."""
    declaration, route = routed.declaration, routed.route
    if isinstance(column, Call):
        return column.name == "key" and not route
    key = declaration.keys[route] if route else declaration.key
    return isinstance(column, Attribute) and key == ".".join(("data", *column.path))


def _refused(message: str) -> OperatorRefused:
    return OperatorRefused(f"suppress: {message}", field=_FIELD)
