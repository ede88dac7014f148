"""An aggregate over a sliding window whose events are columns.

A kernel lets events enter and leave in the order of time, and writes the changes of groups as columns (*steps*). The
condition is examined for many steps together; only steps at which it becomes true or false become objects. All groups
have one time: at the end of a batch each has reached its newest time, and within a batch rows are put into the order in
which each group takes them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from aggregates.columns import EventColumns, ScalarColumn, values_at
from aggregates.document import AggregateBody
from aggregates.emitting import Change, Emission, in_order
from aggregates.errors import AggregateStateError
from aggregates.groups import ONLY, Group
from aggregates.kernels import sliding as kernel
from aggregates.kernels.sliding import Events, note_truths
from aggregates.known_groups import KnownGroups
from aggregates.rows import Scalar, group_text
from aggregates.running import ROWS_FORMAT, AggregateRun
from aggregates.steps import Holds, Step, emission
from aggregates.window_tables import COLUMNS, FUNCTIONS, WindowTables
from streams import NEVER_US

Bound: TypeAlias = tuple[str, float, float]
"""A value, and the range outside which the condition is not true."""

_FORMAT = 2
_FEW = 1_024


def is_columnar(body: AggregateBody) -> bool:
    """Whether the events of an aggregate can be columns: it has a sliding window, whose events it does not show.

    Values that need more of an event than a number, and conditions over values of other times or groups, need rows.
    """
    is_plain = body.having is None or not (body.having.earlier or body.having.overall)
    return (
        body.window.kind == "sliding"
        and not body.window.column
        and is_plain
        and not body.events
        and all(one.function in FUNCTIONS for one in body.values)
    )


def begun_run(
    body: AggregateBody,
    holds: Holds | None,
    saved: tuple[Mapping[str, Any], Mapping[str, bytes]] | None = None,
    *,
    bounds: Sequence[Bound] = (),
    is_simultaneous: bool = False,
    are_rows: bool = False,
) -> AggregateRun | SlidingRun:
    """An aggregate that runs, with a saved state of either form: over columns if it can, unless events must be rows."""
    rows = AggregateRun(body, holds, is_simultaneous=is_simultaneous)
    if are_rows or not is_columnar(body):
        if saved is not None:
            rows.load(*saved)
        return rows
    found = SlidingRun(body, holds, bounds, is_simultaneous=is_simultaneous)
    if saved is None:
        return found
    if saved[0].get("format") != ROWS_FORMAT:
        found.load(*saved)
        return found
    if found.load_rows(*saved):
        return found
    rows.load(*saved)
    return rows


class SlidingRun:
    """A running aggregate with a sliding window, with the groups of one shard; see ``AggregateRun``.

    The condition is not examined where it was false and a value is not within its ``bounds``.
    """

    def __init__(
        self,
        body: AggregateBody,
        holds: Holds | None,
        bounds: Sequence[Bound] = (),
        *,
        is_simultaneous: bool = False,
    ) -> None:
        self.body = body
        places = {one.name: place for place, one in enumerate(body.values)}
        some = [] if is_simultaneous else [(places[name], *some) for name, *some in bounds if name in places]
        self._bounds = np.array(some, np.float64).reshape(len(some), 3)
        self.is_suspended = False
        self._holds, self._is_simultaneous = holds, is_simultaneous
        self._modes = kernel.EACH if holds is None and not is_simultaneous else kernel.EXPIRIES
        self._modes |= kernel.SIMULTANEOUS if is_simultaneous else 0
        self._now_us = NEVER_US
        self._late = 0
        self._clear()

    def _clear(self) -> None:
        self._groups = KnownGroups()
        self._tables = WindowTables(self.body, self._bounds)
        self._causes: list[str] = []  # ids of the last events of steps that wait for further events of their time

    def fits(self, events: EventColumns) -> bool:
        """Whether the kernel can compute with the arguments of events."""
        return self._tables.fits(events.arguments)

    def process(self, events: EventColumns) -> list[Emission]:
        """Take in events that fit, then pass time up to the newest of them."""
        if self.is_suspended:
            return []
        codes = self._groups.codes_of(events)
        at_us, order = self._counted_at(events.times_us, codes)
        columns, times_us = events.arguments, events.times_us
        if order is not None:
            columns = [column.at(order) for column in columns]
            times_us, at_us, codes = times_us[order], at_us[order], codes[order]
        batch = self._tables.batch(times_us, at_us, codes, columns)
        return self._passed(batch if order is None else batch._replace(places=order), events.newest_us, events)

    def advance_time(self, now_us: int) -> list[Emission]:
        """Pass time: no event before it follows."""
        return [] if self.is_suspended else self._passed(self._tables.no_events, now_us, None)

    def end_key(self, key_hash: int, time_us: int) -> list[Emission]:
        """The end of a transaction: it has no effect on a sliding window."""
        return []

    def finish(self) -> list[Emission]:
        """End a finite input; a condition that is true stays true, as no time passes."""
        found = in_order(self._emissions(self._tables.waiting, None))
        self._clear()
        return found

    def drop(self, is_gone: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget groups by their keys, as from ``keys``."""
        head, sections = self.dump()
        groups, held = orjson.loads(sections["groups"]), self._tables.held_columns()
        is_kept = ~np.isin(self._groups.key_hashes, keys[is_gone])
        codes = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        instant_us, waiting = head["waiting"]
        self._begin(
            [group for group, stays in zip(groups, is_kept.tolist(), strict=True) if stays],
            self._tables.chosen(held, np.flatnonzero(is_kept[held.codes]), codes),
            instant_us,
            [(int(codes[code]), cause) for code, cause in waiting if is_kept[code]],
        )

    def keys(self) -> NDArray[np.uint64]:
        """The hashes of the keys of all groups."""
        return self._groups.key_hashes

    def measures(self) -> dict[str, int]:
        """The number of groups and of events in windows, and of events that came too late for their window."""
        tables = self._tables
        waiting = np.count_nonzero(tables.steps.sizes[: tables.waiting] == 0)
        groups = int(tables.state[kernel.LIVE] + waiting)
        return {"groups": groups, "held": tables.held, "late": self._late}

    def clear_counts(self) -> None:
        """Count from 0 again."""
        self._late = 0

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state: small values, and columns by name."""
        self._forget_empty()
        held, words = self._tables.held_columns(), self._tables.groups.words
        head = {
            "format": _FORMAT,
            "now_us": self._now_us,
            "late": self._late,
            "suspended": self.is_suspended,
            "events": self._tables.held,
            "waiting": [int(self._tables.state[kernel.INSTANT]), self._waiting()],
        }
        truths = (words[: len(self._groups), kernel.TRUTH] & kernel.IS_TRUE != 0).tolist()
        groups = zip(self._groups.values, self._groups.keys, self._groups.key_hashes.tolist(), truths, strict=True)
        sections = {name: getattr(held, name).tobytes() for name in COLUMNS}
        return head, {**sections, "groups": orjson.dumps([*groups])}

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore what ``dump`` returned.

        Raises:
            AggregateStateError: It is of a format that this release does not know, or is damaged.
        """
        if head.get("format") != _FORMAT:
            raise AggregateStateError(f"the state of an aggregate has the unknown format {head.get('format')!r}")
        self._restore(head)
        try:
            held = self._tables.read_columns(head["events"], sections)
        except ValueError as error:
            raise AggregateStateError(f"the columns of a saved aggregate are cut off: {error}") from error
        self._begin(orjson.loads(sections["groups"]), held, *head["waiting"])

    def load_rows(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> bool:
        """Restore what ``AggregateRun.dump`` returned; returns whether its events fit."""
        saved = orjson.loads(sections["groups"])
        held = sorted(
            (event[0], event[1], code, event[3])
            for code, group in enumerate(saved)
            for _, (_, events) in group[-1]
            for event in events
        )
        places = {one.argument: place for place, one in enumerate(self.body.values)}
        columns = [ScalarColumn.of([event[3][places[one]] for event in held]) for one in self.body.arguments]
        if not self._tables.fits(columns):
            return False
        self._restore(head)
        times_us = np.array([event[0] for event in held], np.int64)
        codes = np.array([event[2] for event in held], np.int32)
        waiting = [(code, group[6]) for code, group in enumerate(saved) if group[5] is not None]
        instant_us = max((group[5] for group in saved if group[5] is not None), default=0)
        groups = [[*group[:3], group[4]] for group in saved]
        self._begin(groups, self._tables.batch(times_us, times_us, codes, columns), instant_us, waiting)
        return True

    def as_rows(self) -> AggregateRun:
        """The aggregate with its events as rows, for events that do not fit."""
        held, places = self._tables.held_columns(), {name: place for place, name in enumerate(self.body.arguments)}
        columns = self._tables.scalars(held)
        arguments = [
            columns[places[one.argument]] if one.argument else [True] * len(held.codes) for one in self.body.values
        ]
        events: list[list[Any]] = [[] for _ in self._groups.keys]
        rows = zip(held.times_us.tolist(), held.codes.tolist(), zip(*arguments, strict=True), strict=True)
        for number, (time_us, code, some) in enumerate(rows, 1):
            events[code].append([time_us, number, "", some, None])
        instant_us, waiting = int(self._tables.state[kernel.INSTANT]), dict(self._waiting())
        saved = [
            [
                *(self._groups.values[code], self._groups.keys[code], int(self._groups.key_hashes[code])),
                *(self._now_us, bool(self._tables.groups.words[code, kernel.TRUTH] & kernel.IS_TRUE)),
                *((instant_us, waiting[code]) if code in waiting else (None, "")),
                [],
                [[ONLY, [True, some]]] if some else [],
            ]
            for code, some in enumerate(events)
            if some or code in waiting
        ]
        found = AggregateRun(self.body, self._holds, is_simultaneous=self._is_simultaneous)
        head = {"now_us": self._now_us, "late": self._late, "suspended": self.is_suspended, "number": len(held.codes)}
        found.load({**head, "format": ROWS_FORMAT, "revocable": False}, {"groups": orjson.dumps(saved)})
        return found

    def _restore(self, head: Mapping[str, Any]) -> None:
        self._now_us, self._late, self.is_suspended = head["now_us"], head["late"], head["suspended"]

    def _begin(
        self, groups: Sequence[Sequence[Any]], held: Events, instant_us: int, waiting: Sequence[tuple[int, str]]
    ) -> None:
        """Begin with groups, events in the window, and the groups that wait for further events of a time."""
        self._clear()
        self._groups.restore(groups)
        for _ in self._tables.slide(held, len(groups), (0, len(held.codes), self.body.window.size, NEVER_US)):
            """Nothing is emitted."""
        self._tables.groups.words[: len(groups), kernel.TRUTH] = [is_true for *_, is_true in groups]
        self._tables.wait([code for code, _ in waiting], instant_us)
        self._causes = [cause for _, cause in waiting]
        self._name_causes()

    def _counted_at(
        self, times_us: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.intp] | None]:
        """When events count, at the time of their group; and the order of these times, if rows have another."""
        at_us = np.maximum(times_us, self._now_us)
        if (at_us[1:] >= at_us[:-1]).all():
            return at_us, None
        newest: dict[int, int] = {}
        for row, (code, time_us) in enumerate(zip(codes.tolist(), at_us.tolist(), strict=True)):
            at_us[row] = newest[code] = max(newest.get(code, time_us), time_us)
        return at_us, np.argsort(at_us, kind="stable")

    def _passed(self, batch: Events, newest_us: int, events: EventColumns | None) -> list[Emission]:
        """Take events in at their times, and pass time."""
        tables, found = self._tables, list[Emission]()
        state = tables.state
        self._now_us = max(self._now_us, newest_us)
        limits = (self._modes, self.body.most_rows, self.body.window.size, self._now_us)
        for status in tables.slide(batch, len(self._groups), limits):
            is_waiting = status == kernel.TOO_MANY or state[kernel.INSTANT] == self._now_us
            is_open = status == kernel.FULL or (self._is_simultaneous and is_waiting)
            found += self._emissions(int(state[kernel.BEGUN] if is_open else state[kernel.STEPS]), events)
            if status == kernel.TOO_MANY:
                self._clear()
                self.is_suspended = True
                return in_order(found)
        self._late += int(state[kernel.LATE])
        state[kernel.LATE] = 0
        self._remember_causes(events)
        if len(self._groups) > 2 * state[kernel.LIVE] + _FEW:
            self._forget_empty()
        tables.shrink()
        return in_order(found)

    def _waiting(self) -> list[tuple[int, str]]:
        """The groups whose evaluation waits for further events of the newest time, and their last events of it."""
        codes = self._tables.steps.codes[: self._tables.waiting].tolist()
        return list(zip(codes, self._causes, strict=True))

    def _remember_causes(self, events: EventColumns | None) -> None:
        """Keep the ids of the last events of the steps that wait."""
        self._causes = self._causes_of(self._tables.steps.places[: self._tables.waiting], events)
        self._name_causes()

    def _name_causes(self) -> None:
        places = self._tables.steps.places[: self._tables.waiting]
        places[:] = [-2 - number if cause else -1 for number, cause in enumerate(self._causes)]

    def _causes_of(self, places: NDArray[np.int64], events: EventColumns | None) -> list[str]:
        """The ids of the events that caused steps; empty: time did."""
        named = iter(values_at(events.ids, places[places >= 0]) if events is not None else ())
        return [
            next(named) if place >= 0 else "" if place == -1 else self._causes[-2 - place] for place in places.tolist()
        ]

    def _emissions(self, count: int, events: EventColumns | None) -> list[Emission]:
        """The derived events of the first steps, which are finished."""
        rows, is_true = self._changes(count)
        found = list(self._emissions_at(rows, is_true, events)) if len(rows) else []
        self._tables.take_steps(count)
        return found

    def _changes(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The steps that are emitted, and whether the condition is true then."""
        steps = self._tables.steps
        if self._holds is None or not count:
            rows = np.flatnonzero((steps.sizes[:count] > 0) & (steps.places[:count] != -1))
            return rows, np.ones(len(rows), np.bool_)
        holds, changes = self._holds(_Columns(self, count), count), np.empty(count, np.int64)
        words = self._tables.groups.words
        changed = note_truths(steps.codes[:count], steps.sizes[:count], holds, words, changes)
        rows = changes[:changed]
        is_true = holds[rows] & (steps.sizes[rows] > 0)
        return (rows, is_true) if self.body.clear else (rows[is_true], is_true[is_true])

    def _emissions_at(
        self, rows: NDArray[np.int64], is_true: NDArray[np.bool_], events: EventColumns | None
    ) -> Iterator[Emission]:
        tables, groups = self._tables, self._groups
        steps = tables.steps
        places = steps.places[rows]
        columns = [
            *(steps.codes[rows].tolist(), steps.at_us[rows].tolist(), places.tolist(), steps.sizes[rows].tolist()),
            *(self._causes_of(places, events), tables.values_at(rows), is_true.tolist()),
        ]
        for code, at_us, place, size, cause, some, holds in zip(*columns, strict=True):
            values = groups.values[code]
            group = Group(values, group_text(values), groups.keys[code], int(groups.key_hashes[code]))
            step = Step(
                group=group,
                time_us=at_us,
                place=0 if self._is_simultaneous else place + 1,
                kind="changed",
                cause=cause,
                is_empty=not size,
                values=some,
                more=(),
                shown=(),
                bounds=None,
                errors={},
            )
            change: Change = "each" if self._holds is None else "met" if holds else "cleared"
            yield emission(step, change, self.body)

    def _forget_empty(self) -> None:
        """Forget the groups that no event is of."""
        tables, count = self._tables, len(self._groups)
        is_kept = np.zeros(count, np.bool_)
        some = tables.groups.words[:count, kernel.HELD_ROWS]
        is_kept[: len(some)] = some > 0
        is_kept[tables.steps.codes[: tables.waiting]] = True
        if not is_kept.all():
            self._groups.keep(is_kept)
            tables.keep(is_kept)


class _Columns(dict[str, Any]):
    """The columns of the values of steps, and those of attributes of groups once they are read."""

    def __init__(self, run: SlidingRun, count: int) -> None:
        steps = run._tables.steps
        values = zip(run.body.values, steps.kinds, steps.integers, steps.floats, strict=True)
        super().__init__((one.name, tuple(part[:count] for part in parts)) for one, *parts in values)
        self._run, self._count = run, count

    def __missing__(self, name: str) -> list[Scalar]:
        place, groups = self._run.body.by.index(name), self._run._groups.values
        return [groups[code][place] for code in self._run._tables.steps.codes[: self._count].tolist()]
