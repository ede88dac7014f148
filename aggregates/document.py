"""The document that defines an aggregate, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aggregates.errors import AggregateRefused
from aggregates.having import Having, read_having
from aggregates.values import AggregateValue, read_values
from aggregates.windows import Window, read_window
from streams import listed

MEMBERS = tuple("of where by for_each_row_of values window having clear events type memory ask".split())
ROW = "row"
"""The attribute in ``by`` whose value is the key of a table's row."""

USUAL_ROWS = 2_000_000
"""Events that an aggregate may hold in one shard, unless its document has ``memory``."""

_ATTRIBUTE = re.compile(r"[^\s.,()`'\"]+(\.[^\s.,()`'\"]+)*")
_RESERVED = ("from", "to", "events")
_MOST_EVENTS = 100
_MOST_BY = 16
_MOST_ASKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateBody:
    """An aggregate, as its document describes it.

    Attributes:
        of: The stream whose events are aggregated.
        where: The condition of the events that count. None if all count.
        by: The attributes that form groups (``key`` is the correlation key, ``type`` the event type). Empty for one
            group.
        having: The condition by which a group is reported. Without a condition, a group is reported when its window
            ends. If windows do not end as a whole, the group is reported after each event.
        clear: Whether an event is emitted when the condition becomes false.
        events: The greatest number of a group's newest events that a derived event lists.
        event_type: Type of the derived events. If None, the type is the name of the aggregate.
        most_rows: The most events that are held in one shard.
        ask: The attributes by which questions at any time may group and filter. If empty, questions are not answered.
        rows_of: The table whose rows are the groups. ``by`` then has ``ROW``, the attributes that are columns of the
            table, and the column of window lengths, if rows have windows of their own.
    """

    of: str
    where: str | None
    by: tuple[str, ...]
    values: tuple[AggregateValue, ...]
    window: Window
    having: Having | None = None
    clear: bool = False
    events: int = 0
    event_type: str | None = None
    most_rows: int = USUAL_ROWS
    ask: tuple[str, ...] = ()
    rows_of: str | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The members of ``by`` that are attributes of events."""
        if self.rows_of is None:
            return self.by
        return self.by[1:-1] if self.window.column else self.by[1:]

    @property
    def is_global(self) -> bool:
        """Whether all groups have to be in one shard.

        This is so without ``by``, or if the condition reads values over all groups.
        """
        return not self.by or bool(self.having and self.having.overall)

    @property
    def is_final(self) -> bool:
        """Whether the events of the stream must never be retracted, as questions and groups of table rows require."""
        return bool(self.ask) or self.rows_of is not None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The distinct arguments of the values. An argument is an expression over an event."""
        return tuple(dict.fromkeys(value.argument for value in self.values if value.argument))

    @property
    def emits_each(self) -> bool:
        """Whether a derived event is emitted after each event of a group."""
        return self.having is None and not self.window.ends


def read_aggregate(document: Mapping[str, Any]) -> AggregateBody:
    """Read the document of an aggregate.

    Raises:
        AggregateRefused: A member is missing, unknown or wrong. The message names it.
    """
    if strangers := sorted(map(str, document.keys() - set(MEMBERS))):
        raise AggregateRefused(f"an aggregate has no {listed(strangers)}; it takes {', '.join(MEMBERS)}")
    values = read_values(document.get("values"))
    by, rows_of = _by(document.get("by")), _text(document, "for_each_row_of")
    window = read_window(document.get("window"))
    if rows_of is not None:
        by = _by_rows(by, window)
    for name in (*by, *(value.name for value in values)):
        if name in _RESERVED:
            raise AggregateRefused(f"the name {name!r} is a member of derived events; give it another one")
    if twice := sorted({value.name for value in values} & set(by)):
        raise AggregateRefused(f"{listed(twice)}: a value cannot have the name of an attribute in 'by'", field="values")
    having = (
        read_having(document["having"], [value.name for value in values], rows_of) if "having" in document else None
    )
    body = AggregateBody(
        of=_text(document, "of") or "",
        where=_text(document, "where"),
        by=by,
        values=values,
        window=window,
        having=having,
        clear=_flag(document, "clear"),
        events=_number(document, "events", _MOST_EVENTS),
        event_type=_text(document, "type"),
        most_rows=_rows(document.get("memory")),
        ask=_ask_attributes(document["ask"]) if "ask" in document else (),
        rows_of=rows_of,
    )
    _check(body)
    _check_rows(body)
    return body


def _check(body: AggregateBody) -> None:
    if not body.of:
        raise AggregateRefused("an aggregate needs 'of', the name of its stream", field="of")
    if body.clear and body.having is None:
        raise AggregateRefused("'clear' reports that 'having' became false, and there is no 'having'", field="clear")
    if body.clear and body.window.is_fixed:
        raise AggregateRefused(
            "'clear' has no meaning in tumbling and hopping windows: each is examined once, at its end", field="clear"
        )
    if body.ask and body.window.kind != "sliding":
        raise AggregateRefused(
            "'ask' needs a window that slides over event time, such as '1 h'",
            field="ask",
        )
    every_us = body.window.every_us
    for earlier in body.having.earlier if body.having is not None else ():
        if every_us and earlier.ago_us % every_us:
            raise AggregateRefused(
                f"having: no window ends {earlier.name.partition(', ')[2].rstrip(')')} before another one ends; use a "
                "multiple of the distance between two windows",
                field="having",
            )
    if body.having is not None and body.having.overall and body.window.kind not in ("sliding", "tumbling", "hopping"):
        raise AggregateRefused("having: all(...) needs a sliding, tumbling or hopping window", field="having")


def _check_rows(body: AggregateBody) -> None:
    if body.rows_of is None:
        if body.window.column:
            raise AggregateRefused("window: {row: ..., most: ...} needs 'for_each_row_of'", field="window")
        return
    if body.window.kind in ("transaction", "last"):
        raise AggregateRefused(
            "'for_each_row_of' needs a window of time, such as '1 h', {tumbling: 1 h} or {session: 30 min}",
            field="window",
        )
    if body.ask:
        raise AggregateRefused(
            "'ask' and 'for_each_row_of' are of two aggregates: the rows are the questions of this one", field="ask"
        )
    if body.having is not None and body.having.overall:
        raise AggregateRefused(
            "having: all(...) has no meaning with 'for_each_row_of', as an event is in several groups", field="having"
        )


def _by_rows(by: tuple[str, ...], window: Window) -> tuple[str, ...]:
    columns = (window.column,) if window.column else ()
    if not by or {ROW, *columns} & set(by):
        raise AggregateRefused(
            "'for_each_row_of' needs 'by', the attributes that the table has as columns; "
            f"{' and '.join((ROW, *columns))} cannot be among them",
            field="by",
        )
    return (ROW, *by, *columns)


def _by(value: object, field: str = "by") -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list | tuple) or not all(
        isinstance(name, str) and _ATTRIBUTE.fullmatch(name) for name in names
    ):
        raise AggregateRefused(f"{field!r} is a list of attributes such as [shop, region]", field=field)
    attributes = tuple(name.removeprefix("data.") for name in names)
    if len(set(attributes)) != len(attributes) or len(attributes) > _MOST_BY:
        raise AggregateRefused(f"{field!r} names an attribute twice, or more than {_MOST_BY}", field=field)
    return attributes


def _ask_attributes(value: object) -> tuple[str, ...]:
    by = value.get("by") if isinstance(value, Mapping) and value.keys() == {"by"} else None
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not names or len(names) > _MOST_ASKED:
        raise AggregateRefused(f"'ask' is {{by: [ATTRIBUTE, ...]}} with at most {_MOST_ASKED} attributes", field="ask")
    return _by(names, "ask")


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if name in document and (not isinstance(value, str) or not value.strip()):
        raise AggregateRefused(f"{name!r} of an aggregate is a text, and not {value!r}", field=name)
    return value


def _flag(document: Mapping[str, Any], name: str) -> bool:
    value = document.get(name, False)
    if not isinstance(value, bool):
        raise AggregateRefused(f"{name!r} of an aggregate is true or false, and not {value!r}", field=name)
    return value


def _number(document: Mapping[str, Any], name: str, most: int) -> int:
    value = document.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise AggregateRefused(f"{name!r} of an aggregate is a number up to {most:,}, and not {value!r}", field=name)
    return value


def _rows(value: object) -> int:
    if value is None:
        return USUAL_ROWS
    rows = value.get("rows") if isinstance(value, Mapping) and value.keys() == {"rows"} else None
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise AggregateRefused("'memory' of an aggregate is {rows: N}, the most events per shard", field="memory")
    return rows
