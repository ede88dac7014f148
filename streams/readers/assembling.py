"""Builds the checked list of events of a file, for all formats.

An ``Assembly`` counts positions, drops events with repeated ids, collects problems with their places, and finally sorts
the events by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.readers.options import ReaderOptions

Place: TypeAlias = int | str
"""A place in a file: a line number, or a description in words."""

_SHOWN_PROBLEMS = 5
_KEPT_PROBLEMS = 100


class Assembly:
    """Collects the events of one file, for all formats. Problems do not stop the reading: ``finish`` reports them.

    ``has_numbered`` says whether ``next_id`` has made an id.
    """

    def __init__(self, path: Path, options: ReaderOptions) -> None:
        self._path = path
        self.options = options
        self.has_numbered = False
        self._events: list[Event] = []
        self._ids: set[str] = set()
        self._dropped = 0
        self._count_by_key: dict[str, int] = {}
        self._problems: list[str] = []
        self._problem_count = 0
        self._position = -1
        self._notes: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()

    def next_id(self, name: str) -> str:
        """Return an id for an event without one: ``name:1`` for the first event of ``name``, then ``name:2``."""
        self.has_numbered = True
        number = self._count_by_key.get(name, 0) + 1
        self._count_by_key[name] = number
        event_id = f"{name}:{number}"
        if self.options.on_numbered is not None:
            self.options.on_numbered(event_id)
        return event_id

    def next_time_us(self, value: object, advice: str) -> int:
        """Return the time of the next event: ``value``, or with ``times: line`` the position of the event in the file.

        ``advice`` says how to correct a missing time.
        """
        self._position += 1
        if self.options.times == "line":
            return self._position
        if value is None:
            raise EventRejected(f"no time; {advice}, or number the lines (--times line)", field="time")
        return self.options.clock.read(value, self._notes)

    def take(self, event: Event) -> None:
        """Accept an event whose id comes from the file.

        An event with a repeated id is dropped, unless duplicates are kept.
        """
        if self.options.duplicates == "drop":
            if event.id in self._ids:
                self._dropped += 1
                return
            self._ids.add(event.id)
        self._events.append(event)

    def take_numbered(self, event: Event) -> None:
        """Accept an event with an id from ``next_id``."""
        self._events.append(event)

    def refuse(self, place: Place, reason: EventRejected | str) -> None:
        self._problem_count += 1
        if len(self._problems) < _KEPT_PROBLEMS:
            self._problems.append(f"{_describe(place)}: {reason}")

    def finish(self) -> list[Event]:
        """Return the events, sorted by time or in file order, as the options say. Ties stay in file order.

        Raises ``EventFileError`` with the number of problems and the first few, if there were any.
        """
        if self._problem_count == 0:
            if self._dropped and self.options.on_dropped is not None:
                self.options.on_dropped(self._dropped)
            self._note_times()
            self._note_missing()
            if self.options.is_by_time:
                self._events.sort(key=lambda event: event.time_us)
            return self._events
        if self._problem_count == 1:
            message = f"{self._path}: {self._problems[0]}"
        else:
            first = "\n  ".join(self._problems[:_SHOWN_PROBLEMS])
            more = self._problem_count - min(self._problem_count, _SHOWN_PROBLEMS)
            message = f"{self._path}: {self._problem_count} problems\n  {first}" + (
                f"\n  and {more} more" if more else ""
            )
        raise EventFileError(
            message, file=str(self._path), problems=list(self._problems), problem_count=self._problem_count
        )

    def note_missing(self, attribute: str) -> None:
        """Count a value of an attribute that cannot be read and is treated as missing."""
        self._missing[attribute] += 1

    def _note_missing(self) -> None:
        for name, count in sorted(self._missing.items()):
            if self.options.on_notice is not None:
                what = "value is" if count == 1 else "values are"
                self.options.on_notice(f"{self._path}: {name}: {count:,} {what} not a number, and missing therefore")

    def _note_times(self) -> None:
        words = {"twice": "exist twice", "skipped": "do not exist"}
        for kind, count in sorted(self._notes.items()):
            if self.options.on_notice is not None:
                clock = self.options.clock
                self.options.on_notice(
                    f"{self._path}: {count:,} local times {words[kind]} in {clock.zone}, where clocks were changed; "
                    f"they are read as the {clock.local_times} of two moments (--local-times)"
                )


def _describe(place: Place) -> str:
    return f"line {place}" if isinstance(place, int) else place


def attribute_name(key: str, names: Mapping[str, Any]) -> str:
    """Return the attribute that a key option names. If ``names`` lacks it, a prefix ``data.`` is removed."""
    return key if key in names else key.removeprefix("data.")
