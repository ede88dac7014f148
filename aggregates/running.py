"""Running aggregates, which read events, time and ends of transactions, and emit derived events.

A kernel adds events to windows and removes them, in the order of time, and writes the changes of groups as columns
(*steps*). All groups have the same time, that of the newest event so far. An older event counts from this time on, if
the event is still in the window, so results do not depend on where batches begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from aggregates.columns import EventColumns, ScalarColumn, values_at
from aggregates.document import AggregateBody
from aggregates.emitting import Emission, in_order
from aggregates.errors import AggregateStateError
from aggregates.kernels import tables as kernel
from aggregates.kernels.tables import Events
from aggregates.known_groups import KnownGroups
from aggregates.objects import GroupObjects
from aggregates.placing import KeptEvent, Placed, Placing
from aggregates.scalars import group_text
from aggregates.steps import Holds, InBounds, StepReader
from aggregates.window_tables import WindowTables
from streams import NEVER_US

Bound: TypeAlias = tuple[str, float, float]
"""The name of a value, and the range (lowest, highest) outside which the condition cannot be true."""

MOST_ROWS_OF_AN_EVENT = 4  # a row and an earlier value, each for the event's group and the group of all

_FORMAT = 5
_FEW = 1_024
_FOREVER = -NEVER_US
_NONE = np.zeros(0, np.int64)
_EXTREMES = ("min", "max")
_EXACT = ("count", "count_if", "sum", "avg")  # functions whose values have exact bounds
_KINDS = {"sliding": kernel.SLIDING, "last": kernel.LAST, "session": kernel.SESSION}


class AggregateRun:
    """A running aggregate, with the groups of one shard.

    The kernel decides conditions by ``bounds`` where possible. If the condition was false and a value is out of bounds,
    the condition is not evaluated. An ``InBounds`` condition over counts, sums and means is never evaluated.

    Args:
        holds: Evaluates ``having``. None if the aggregate has no condition.
        bounds: Ranges of values outside which the condition is false.
        is_simultaneous: Whether groups are evaluated after all events of one time, instead of after each event.
        is_revocable: Whether events may be retracted.
    """

    def __init__(
        self,
        body: AggregateBody,
        holds: Holds | None,
        bounds: Sequence[Bound] = (),
        *,
        is_simultaneous: bool = False,
        is_revocable: bool = False,
    ) -> None:
        self.body, self.is_revocable, self.is_suspended = body, is_revocable, False
        self._holds, self._is_simultaneous = holds, is_simultaneous
        places = {value.name: place for place, value in enumerate(body.values)}
        is_plain = not is_simultaneous and not (body.having is not None and body.having.names)
        some = [(places[name], *some) for name, *some in bounds if name in places and is_plain]
        self._bounds = np.array(some, np.float64).reshape(len(some), 3)
        exact = {value.name for value in body.values if is_plain and value.function in _EXACT}
        if isinstance(holds, InBounds) and not exact.issuperset(name for name, *_ in bounds):
            self._holds = holds.holds
        values = enumerate(body.values)
        self._ordered = {place for place, value in values if is_revocable and value.function in _EXTREMES}
        self._now_us, self._late = NEVER_US, 0
        self._suspended_by = _FOREVER  # the index of the event that suspends the aggregate
        self._clear()

    def _clear(self, digits: Sequence[int] = (), texts: Sequence[str] = ()) -> None:
        body, window = self.body, self.body.window
        self._is_held = window.kind in ("sliding", "last") or self.is_revocable
        self._is_logged = self.is_revocable or body.events > 0
        modes = self._step_modes() | _KINDS.get(window.kind, 0)
        modes |= (kernel.LOGGED if self._is_logged else 0) | (kernel.SHOWN if body.events else 0)
        if self._is_held:
            has_ends = any(value.function in ("first", "last") for value in body.values)
            modes |= kernel.HOLDS | (kernel.LINKED if window.kind != "sliding" or has_ends else 0)
        modes |= kernel.REMEMBERED if body.having is not None and body.having.earlier else 0
        is_overall = body.having is not None and bool(body.having.overall)
        self._groups = KnownGroups(are_keys=body.by == ("key",) and not is_overall)
        self._tables = WindowTables(body, self._bounds, modes, self._ordered, digits, texts)
        self._objects = GroupObjects(body.values, body.events, leaves=self._is_held)
        self._placing = Placing(body, self._groups, is_revocable=self.is_revocable)
        self._steps = StepReader(body, self._holds, self._groups, self._tables, is_simultaneous=self._is_simultaneous)
        self._nothing = self._tables.ends(_NONE, _NONE)
        self._next_us = -NEVER_US  # no window ends before ``_next_us``
        self._causes: list[str] = []  # ids of the causes of steps that wait for further events of their time

    def _step_modes(self) -> int:
        if self.body.window.is_fixed or (self._holds is None and not self.body.emits_each):
            return 0
        if self._is_simultaneous:
            return kernel.EXPIRIES | kernel.SIMULTANEOUS
        return kernel.EACH if self._holds is None else kernel.EXPIRIES

    def process(self, events: EventColumns) -> list[Emission]:
        """Process events, then advance time to the newest event. Return the derived events."""
        if self.is_suspended:
            return []
        self._fit(events.arguments)
        emissions, before_us, self._now_us = list[Emission](), self._now_us, max(self._now_us, events.newest_us)
        reached_us = NEVER_US
        for placed in self._placing.placed(events, before_us, is_kept=self._is_logged):
            if not self.is_suspended and len(placed.hashes):
                batch = self._batch(placed, events)
                reached_us = int(batch.at_us[-1])
                emissions += self._slid(batch, events, reached_us)
            self._late += int(np.searchsorted(placed.late, self._suspended_by))
        return in_order([*emissions, *self._passed(events, reached_us)])

    def advance_time(self, now_us: int) -> list[Emission]:
        """Advance time to ``now_us``, and return the derived events.

        The caller ensures that no earlier event follows.
        """
        if self.is_suspended:
            return []
        self._now_us = max(self._now_us, now_us)
        return in_order(self._passed(None, NEVER_US))

    def end_key(self, key_hash: int, time_us: int) -> list[Emission]:
        if self.body.window.kind not in ("transaction", "last"):
            return []
        codes = self._groups.codes_of_key(key_hash)
        at_us = np.maximum(self._tables.groups.words[codes, kernel.CLOCK], time_us)
        emissions = self._ended(codes, at_us, None)
        self._remember_causes(None)
        return in_order(emissions)

    def finish(self) -> list[Emission]:
        """End a finite input: every transaction, and every window that ends as a whole, ends now.

        Return the derived events. No time passes, so no event leaves a sliding window, and a condition that is true
        remains true.
        """
        emissions = in_order(self._emissions(None, is_open=False))
        if self.body.window.kind != "sliding":
            words = self._tables.groups.words[: len(self._groups)]
            codes = np.flatnonzero(words[:, kernel.HELD_ROWS] > 0)
            emissions += in_order(self._ended(codes, np.minimum(words[codes, kernel.DUE], self._now_us), None))
        self._clear()
        return emissions

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashes of the correlation keys of all groups."""
        return self._groups.key_hashes

    def measures(self) -> dict[str, int]:
        """Return counts of groups, of events in windows (``held``), and of events that came too late for their window.

        If windows are fixed, ``groups`` counts windows. If events are not stored, ``held`` counts windows.
        """
        tables = self._tables
        waiting = np.count_nonzero(tables.steps.sizes[: tables.waiting] == 0)
        groups = int(tables.state[kernel.LIVE] + waiting)
        return {"groups": groups, "held": tables.held, "late": self._late}

    @property
    def rows(self) -> int:
        """The number of events in windows, plus the number of stored earlier values. ``most_rows`` limits this sum."""
        return self._tables.held + self._steps.past.size

    @property
    def waiting(self) -> int:
        """The number of steps that are not emitted yet.

        A step is a change of a group. It is not emitted while further events of its time may follow.
        """
        return int(self._tables.waiting)

    @property
    def is_idle(self) -> bool:
        """Whether the run has no group, and no earlier values that can still be read."""
        return not self.measures()["groups"] and not self._steps.past.size

    def clear_counts(self) -> None:
        """Reset the number of events that arrived too late to 0."""
        self._late = 0

    def _fit(self, columns: Sequence[ScalarColumn]) -> None:
        """Adapt the tables to new arguments, which are added afterwards.

        Sums get more digits. The tables are rebuilt if minima or maxima need all values in order, or if many texts are
        unused.
        """
        unfit = {self.body.arguments[place] for place in self._tables.unfit(columns)}
        if unfit or self._tables.are_texts_many(len(self._groups)):
            values = enumerate(self.body.values)
            self._ordered |= {n for n, value in values if value.function in _EXTREMES and value.argument in unfit}
            self._begin(*self.dump())
        self._tables.widen(columns)

    def _batch(self, placed: Placed, events: EventColumns) -> Events:
        rows, known, tables = placed.rows, len(self._groups), self._tables
        is_event = rows.ops != kernel.RETRACT
        some: Any = slice(None) if is_event.all() else is_event
        sources = rows.sources if placed.is_of_all is None else np.where(placed.is_of_all, ~rows.sources, rows.sources)
        codes = np.zeros(len(sources), np.int32)
        starts = None if placed.starts is None else placed.starts[some]
        codes[some] = self._groups.codes_of(placed.hashes[some], starts, sources[some], events)
        tables.reserve(len(self._groups))
        size = self.body.window.size
        if self.body.window.is_fixed:
            dues_us = self._groups.starts[known:] + size
            tables.groups.words[known : len(self._groups), kernel.DUE] = dues_us
            self._next_us = min(self._next_us, int(dues_us.min(initial=self._next_us)))
        elif self.body.window.kind == "session":
            self._next_us = min(self._next_us, int(rows.times_us.min(initial=self._next_us)) + size)
        elif self.body.window.kind != "sliding":
            tables.groups.words[known : len(self._groups), kernel.DUE] = kernel.FOREVER
        columns = (
            events.arguments if rows.is_whole(len(events)) else [column.at(rows.sources) for column in events.arguments]
        )
        return tables.batch(rows, codes, columns)

    def _passed(self, events: EventColumns | None, reached_us: int) -> list[Emission]:
        """Advance sliding windows from ``reached_us`` to the present, and end due windows.

        Return the derived events.
        """
        if self.is_suspended:
            return []
        state, emissions = self._tables.state, list[Emission]()
        if self.body.window.kind == "sliding" and reached_us < self._now_us:
            emissions += self._slid(self._nothing, events, self._now_us)
        emissions += self._due(self._now_us, events)
        if not self._is_simultaneous or state[kernel.INSTANT] != self._now_us:
            emissions += self._emissions(events, is_open=False)
        self._late += int(state[kernel.LATE])
        state[kernel.LATE] = 0
        self._remember_causes(events)
        self._steps.past.forget_until(self._now_us)
        self._steps.forget_overall_until(self._now_us)
        if len(self._groups) > 2 * state[kernel.LIVE] + _FEW:
            self._forget_empty()
        self._tables.shrink()
        return emissions

    def _due(self, now_us: int, events: EventColumns | None) -> list[Emission]:
        if now_us < self._next_us:
            return []
        words = self._tables.groups.words[: len(self._groups)]
        is_full, dues_us = words[:, kernel.HELD_ROWS] > 0, words[:, kernel.DUE]
        codes = np.flatnonzero(is_full & (dues_us <= now_us))
        self._next_us = int(dues_us[is_full & (dues_us > now_us)].min(initial=-NEVER_US))
        return self._ended(codes, dues_us[codes], events)

    def _ended(self, codes: NDArray[np.int64], at_us: NDArray[np.int64], events: EventColumns | None) -> list[Emission]:
        """End the windows of the groups ``codes`` at the times ``at_us``. Return the derived events.

        Of windows with the same end, the window over all groups is first, because other conditions may read its values.
        """
        if not len(codes):
            return []
        order = np.argsort(self._tables.groups.words[codes, kernel.DUE], kind="stable")
        if self.body.having is not None and self.body.having.overall:
            is_of_group = np.array([not self._groups.is_of_all(code) for code in codes.tolist()])
            order = np.lexsort((is_of_group, self._tables.groups.words[codes, kernel.DUE]))
        return self._slid(self._tables.ends(codes[order], at_us[order]), events, NEVER_US)

    def _slid(self, batch: Events, events: EventColumns | None, until_us: int) -> list[Emission]:
        """Add the events of a batch to the windows, and advance time to ``until_us``. Return the derived events.

        If events may be simultaneous, a change at the newest time waits until no more events of this time can arrive.
        If there are too many rows, the aggregate is cleared and suspended.
        """
        tables, emissions, past = self._tables, list[Emission](), self._steps.past
        most = self.body.most_rows if until_us > NEVER_US else _FOREVER
        limits = [most - past.size, self.body.window.size, until_us]
        for status in tables.slide(batch, limits):
            self._take_log()
            is_full = status == kernel.TOO_MANY
            at_us = int(batch.at_us[tables.state[kernel.ROW] - 1]) if is_full else NEVER_US
            if is_full and self.body.window.kind != "sliding":
                emissions += self._due(at_us, events)
            is_open = self._is_simultaneous if is_full else status != kernel.DONE or self._waits(until_us)
            emissions += self._emissions(events, is_open=is_open)
            past.forget_until(at_us)
            limits[0] = most - past.size
            if is_full and tables.held > limits[0]:
                self._suspend(int(batch.places[tables.state[kernel.ROW] - 1]))
        return emissions

    def _suspend(self, event: int) -> None:
        self._late += int(self._tables.state[kernel.LATE])
        self._suspended_by = event
        self._clear()
        self.is_suspended = True

    def _waits(self, until_us: int) -> bool:
        return self._is_simultaneous and bool(self._tables.state[kernel.INSTANT] >= until_us)

    def _finished(self, *, is_open: bool) -> NDArray[np.bool_]:
        """Return a mask over the steps (changes of groups): true if no event can change the step any more.

        Such a step can be emitted. ``is_open`` is true if further events of the newest time may follow.
        """
        tables, count = self._tables, self._tables.waiting
        is_sliding = self.body.window.kind == "sliding"
        if not is_open or not (is_sliding or self._is_simultaneous):
            return np.ones(count, np.bool_)
        numbers, codes = np.arange(count), tables.steps.codes[:count]
        is_finished = numbers < tables.state[kernel.BEGUN]
        if not is_sliding:
            ends = np.flatnonzero(tables.steps.ended[:count])
            newest = np.full(len(self._groups), -1)
            newest[codes[ends]] = ends
            is_finished |= numbers <= newest[codes]
        return np.asarray(is_finished, np.bool_)

    def _take_log(self) -> None:
        """Update the sketches and listed events of groups from the kernel's log, and clear the log.

        For each step in the log, a copy of the group's estimates and events is kept.
        """
        tables, objects = self._tables, self._objects
        entries = tables.log[: tables.state[kernel.LOGS]]
        reals = entries[:, kernel.BITS].copy().view(np.float64).tolist()
        tables.state[kernel.LOGS] = 0
        for (op, code, number, kind, bits), real in zip(entries.tolist(), reals, strict=True):
            if op == kernel.STEPPED:
                self._steps.details[number] = objects.values(code)
            elif op == kernel.SKETCHED:
                objects.sketch(code, number, tables.scalar(kind, bits, real))
            elif op == kernel.ENTERED:
                event = self._placing.entered(number, is_kept=self._is_held)
                if event.shown is not None:
                    objects.add(code, (event.time_us, number), event.shown)
            elif op == kernel.LEFT:
                event = self._placing.left(number)
                if event.shown is not None:
                    objects.remove(code, (event.time_us, number))
            else:
                objects.forget(code)

    def _emissions(self, events: EventColumns | None, *, is_open: bool) -> list[Emission]:
        if not self._tables.waiting:
            return []
        is_taken = self._finished(is_open=is_open)
        return self._steps.emissions(is_taken, lambda places: self._causes_of(places, events))

    def _waiting(self) -> list[tuple[int, str]]:
        """Return the group (code) and the causing event (id) of each step that is not emitted yet."""
        codes = self._tables.steps.codes[: self._tables.waiting].tolist()
        return list(zip(codes, self._causes, strict=True))

    def _remember_causes(self, events: EventColumns | None) -> None:
        self._causes = self._causes_of(self._tables.steps.places[: self._tables.waiting], events)
        self._name_causes()

    def _name_causes(self) -> None:
        places = self._tables.steps.places[: self._tables.waiting]
        places[:] = [-2 - number if cause else -1 for number, cause in enumerate(self._causes)]

    def _causes_of(self, places: NDArray[np.int64], events: EventColumns | None) -> list[str]:
        """Return the id of the event at each of ``places``, which caused a step.

        It is empty if passing time was the cause.
        """
        if not len(places):
            return []
        named = iter(values_at(events.ids, places[places >= 0]) if events is not None else ())
        return [
            next(named) if place >= 0 else "" if place == -1 else self._causes[-2 - place] for place in places.tolist()
        ]

    def _forget_empty(self) -> None:
        tables, count = self._tables, len(self._groups)
        is_kept = tables.groups.words[:count, kernel.HELD_ROWS] > 0
        is_kept[tables.steps.codes[: tables.waiting]] = True
        if not is_kept.all():
            self._groups.keep(is_kept)
            tables.keep(is_kept)
            self._objects.keep(is_kept)

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the state to save: a head of plain JSON, and columns by name."""
        self._forget_empty()
        tables, groups = self._tables, self._groups
        words = tables.groups.words[: len(groups)]
        texts, columns = tables.dump(len(groups))
        head = {
            "format": _FORMAT,
            "now_us": self._now_us,
            "late": self._late,
            "suspended": self.is_suspended,
            "revocable": self.is_revocable,
            "ordered": sorted(self._ordered),
            "digits": tables.digits,
            "texts": texts,
            "number": self._placing.number,
            "waiting": [int(tables.state[kernel.INSTANT]), self._waiting()],
            "past": self._steps.past.dump(),
            "overall": [*self._steps.overall.items()],
        }
        truths = (words[:, kernel.MARK] & kernel.IS_TRUE != 0).tolist()
        known = [(*group, is_true) for group, is_true in zip(groups.saved(), truths, strict=True)]
        sections = {"groups": orjson.dumps(known), **columns}
        if self.body.window.is_fixed:
            sections["starts"] = groups.starts.tobytes()
        if self.body.window.kind != "sliding":
            sections["clocks"] = words[:, kernel.CLOCK].tobytes()
        if not self._is_held:
            sections["objects"] = orjson.dumps(self._objects.dump())
        elif self._is_logged:
            sections["kept"] = orjson.dumps([(number, tuple(event)) for number, event in self._placing.kept.items()])
        return head, sections

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore the state that ``dump`` returned.

        Raises:
            AggregateStateError: The state is damaged, or has a form that this release does not read.
        """
        if head.get("format") != _FORMAT:
            raise AggregateStateError(
                f"the saved state of an aggregate has the form {head.get('format')!r}, and this release reads "
                f"{_FORMAT} only; register the aggregate again, which begins with empty windows"
            )
        self._now_us, self._late, self.is_suspended = head["now_us"], head["late"], head["suspended"]
        self._ordered |= set(head["ordered"])
        try:
            self._begin(head, sections)
        except (ValueError, KeyError) as error:
            raise AggregateStateError(f"the columns of a saved aggregate are truncated: {error}") from error

    def drop(self, is_gone: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget the groups of some keys. ``is_gone`` is a mask over ``keys``."""
        saved = self.dump()
        self._begin(*saved, is_kept=~np.isin(self._groups.key_hashes, keys[is_gone]))

    def _begin(
        self, head: Mapping[str, Any], sections: Mapping[str, bytes], is_kept: NDArray[np.bool_] | None = None
    ) -> None:
        self._clear(head["digits"], head["texts"])
        groups = orjson.loads(sections["groups"])
        is_kept = np.ones(len(groups), np.bool_) if is_kept is None else is_kept
        dropped = [values for (values, *_), stays in zip(groups, is_kept.tolist(), strict=True) if not stays]
        groups = [group for group, stays in zip(groups, is_kept.tolist(), strict=True) if stays]
        starts = np.frombuffer(sections["starts"], np.int64)[is_kept] if "starts" in sections else None
        self._groups.restore(groups, starts)
        tables, count = self._tables, len(groups)
        tables.reserve(count)
        codes = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        if self._is_held:
            self._enter(head, sections, is_kept, codes)
        else:
            tables.load(sections, is_kept)
            self._placing.restore({}, head["number"])
            self._objects.load(orjson.loads(sections["objects"]))
            self._objects.keep(is_kept)
        words = tables.groups.words[:count]
        words[:, kernel.MARK] = [is_true for *_, is_true in groups]
        if self.body.window.kind != "sliding":
            words[:, kernel.CLOCK] = np.frombuffer(sections["clocks"], np.int64)[is_kept]
        if self.body.window.is_fixed or self.body.window.kind == "session":
            self._next_us = NEVER_US
        self._steps.past.load(head["past"])
        for values in dropped:
            self._steps.past.forget(group_text(values))
        self._steps.overall = {start: tuple(values) for start, values in head["overall"]}
        instant_us, waiting = head["waiting"]
        waiting = [(int(codes[code]), cause) for code, cause in waiting if is_kept[code]]
        tables.reopen_steps([code for code, _ in waiting], instant_us)
        base = int(tables.state[kernel.BASE])
        self._steps.details = {base + n: self._objects.values(code) for n, (code, _) in enumerate(waiting)}
        self._causes = [cause for _, cause in waiting]
        self._name_causes()

    def _enter(
        self,
        head: Mapping[str, Any],
        sections: Mapping[str, bytes],
        is_kept: NDArray[np.bool_],
        codes: NDArray[np.int32],
    ) -> None:
        tables, window = self._tables, self.body.window
        held = tables.read_columns(sections)
        batch = tables.chosen(held, np.flatnonzero(is_kept[held.codes]), codes)
        if self._is_logged:
            entering = set(batch.serials.tolist())
            kept = {number: KeptEvent(*event) for number, event in orjson.loads(sections["kept"])}
            self._placing.restore({n: kept_event for n, kept_event in kept.items() if n in entering}, head["number"])
        if self.body.window.is_fixed:
            tables.groups.words[: len(self._groups), kernel.DUE] = self._groups.starts + window.size
        elif window.kind in ("transaction", "last"):
            tables.groups.words[:, kernel.DUE] = kernel.FOREVER
        for _ in tables.slide(batch, (_FOREVER, window.size, NEVER_US), kernel.LOADING):
            self._take_log()
