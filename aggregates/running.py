"""An aggregate that runs: events, time and the ends of transactions in, derived events out.

The time of a group is the time of its newest event, or the time that has passed for all groups, whichever is later. An
event that is older than the time of its group counts from then on, if it is still in the window. Time passes for all
groups at the end of each batch and with each watermark; what is due in between happens at its own time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from aggregates.contents import Contents, Folded, Held, WindowContents
from aggregates.document import AggregateBody
from aggregates.emitting import Emission, in_order
from aggregates.errors import AggregateStateError
from aggregates.groups import ONLY, Group
from aggregates.having import Having
from aggregates.rows import EventRows, Row, Scalar, group_text
from aggregates.steps import Holds, Step, StepKind, emitted
from aggregates.windows import Window
from streams import NEVER_US

ROWS_FORMAT = 1
_ONLY = (ONLY,)
_MOST_TEXTS = 100_000


class AggregateRun:
    """A running aggregate, with the groups of one shard.

    Args:
        holds: Evaluates ``having``; None: it has none.
        is_simultaneous: Whether groups are evaluated after all events of one time, not after each.
    """

    def __init__(self, body: AggregateBody, holds: Holds | None, *, is_simultaneous: bool = False) -> None:
        self.body = body
        self.is_suspended = False
        self._holds, self._is_simultaneous = holds, is_simultaneous
        self._longest_us = body.having.longest_us if body.having is not None else 0
        self._clear()
        is_overall = body.having is not None and bool(body.having.overall)
        self._is_held = not body.window.ends or bool(body.events) or is_overall
        self._places = {one.name: place for place, one in enumerate(body.values)}
        self._nothing = Contents(body.values).values()
        self._late = 0
        self._is_revocable = False  # whether events may have to be found by their ids
        self._texts: dict[tuple[Scalar, ...], str] = {}
        self._windows: dict[Scalar, Window] = {}  # of rows of a table

    def _clear(self) -> None:
        self._groups: dict[str, Group] = {}
        self._of_key: dict[int, dict[str, None]] = {}
        self._due: list[tuple[int, str]] = []
        self._overall: dict[int, Contents] = {}
        self._now_us = NEVER_US
        self._number = self._held = 0
        self._steps: list[Step] = []

    def process(self, events: EventRows) -> list[Emission]:
        """Take events in, then pass time up to the newest of them."""
        if self.is_suspended:
            return []
        for place, row in enumerate(events, 1):
            self._take(row, place)
            if self._held > self.body.most_rows:
                self._pass(row.time_us)
                if self._held > self.body.most_rows:
                    return self._suspended()
        self._pass(events.newest_us)
        return self._emitted()

    def advance_time(self, now_us: int) -> list[Emission]:
        """Pass time: no event before it follows."""
        self._pass(now_us)
        return self._emitted()

    def end_key(self, key_hash: int, time_us: int) -> list[Emission]:
        """End the transaction of a key."""
        self._end_key(key_hash, time_us, 0)
        return self._emitted()

    def finish(self) -> list[Emission]:
        """End a finite input: every transaction and every window that ends as a whole does so now.

        A condition that is true stays true, as no time passes in which events would leave a sliding window.
        """
        for key in list(self._of_key):
            self._end_key(key, self._now_us, 0)
        groups = list(self._groups.values())
        for group in groups:
            self._flush(group)
            if self.body.window.kind == "session":
                self._end_window(group, self._now_us, 0)
        if self.body.window.is_fixed:  # in the order of time, in which windows over all groups are forgotten
            for start, group in sorted(((start, one) for one in groups for start in one.windows), key=itemgetter(0)):
                self._close(group, start, min(self._now_us, start + self.body.window.size))
        found = self._emitted()
        self._clear()
        return found

    def drop(self, is_gone: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget groups by their keys, as from ``keys``."""
        gone = set(keys[is_gone].tolist())
        saved = [group for group in self._groups.values() if group.key_hash not in gone]
        now_us, number = self._now_us, self._number
        self._clear()
        self._now_us, self._number = now_us, number
        self._restore(saved)

    def keys(self) -> NDArray[np.uint64]:
        """The hashes of the keys of all groups."""
        return np.fromiter((one.key_hash for one in self._groups.values()), np.uint64, len(self._groups))

    def measures(self) -> dict[str, int]:
        """The number of groups and of events in windows, and of events that came too late for their window."""
        return {"groups": len(self._groups), "held": self._held, "late": self._late}

    def clear_counts(self) -> None:
        """Count from 0 again."""
        self._late = 0

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state: small values, and sections by name."""
        head = {
            "format": ROWS_FORMAT,
            "now_us": self._now_us,
            "number": self._number,
            "late": self._late,
            "suspended": self.is_suspended,
            "revocable": self._is_revocable,
        }
        return head, {"groups": orjson.dumps([one.dump() for one in self._groups.values()])}

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore what ``dump`` returned.

        Raises:
            AggregateStateError: It is of a format that this release does not know.
        """
        if head.get("format") != ROWS_FORMAT:
            raise AggregateStateError(f"the state of an aggregate has the unknown format {head.get('format')!r}")
        self._clear()
        self._now_us, self._number, self._late = head["now_us"], head["number"], head["late"]
        self.is_suspended, self._is_revocable = head["suspended"], head.get("revocable", True)
        self._restore(Group.load(one, self.body.values) for one in orjson.loads(sections["groups"]))

    def _restore(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._groups[group.text] = group
            self._of_key.setdefault(group.key_hash, {})[group.text] = None
            for start, contents in group.windows.items():
                self._held += contents.rows
                for event in contents.events if isinstance(contents, Contents) else ():
                    self._add_overall(start, event)
            group.noted_us = self._due_us(group)
            if group.noted_us is not None:
                self._due.append((group.noted_us, group.text))
        heapify(self._due)

    def _emitted(self) -> list[Emission]:
        steps, self._steps = self._steps, []
        return in_order(emitted(steps, self.body, self._holds)) if steps else []

    def _suspended(self) -> list[Emission]:
        """Stop for good, after what was emitted before."""
        found = self._emitted()
        self._clear()
        self.is_suspended = True
        return found

    def _take(self, row: Row, place: int) -> None:
        if self.body.having is not None and self.body.having.overall:
            self._pass(row.time_us)  # all groups have one time
        if row.retracts:
            self._retract(row, place)
        elif row.id:
            self._count(row, place)
        if row.ends:
            self._end_key(row.key_hash, row.time_us, place)

    def _count(self, row: Row, place: int) -> None:
        """Take in an event that counts, unless its window has passed."""
        text = self._text_of(row.group)
        group = self._groups.get(text)
        if group is None:
            group = self._groups[text] = Group.of(row, text)
            self._of_key.setdefault(row.key_hash, {})[text] = None
        now_us = max(row.time_us, group.clock_us, self._now_us)
        is_late, was_noted = row.time_us < now_us, group.noted_us is not None
        if group.noted_us is None or group.noted_us <= now_us:
            self._bring(group, now_us)
        else:  # nothing is due
            group.clock_us = now_us
        starts = self._starts(group, row.time_us, now_us)
        self._number += 1
        self._is_revocable |= row.is_revocable
        event = Held(row.time_us, self._number, row.id, row.arguments, row.event)
        for start in starts:
            self._add(group, start, event, is_revocable=row.is_revocable)
            self._add_overall(start, event)
        self._late += not starts
        if starts and not self.body.window.is_fixed:
            self._changed(group, now_us, place, row.id)
        if is_late or not was_noted or group.noted_us is None or self._is_simultaneous or not starts:
            self._settle(group)  # otherwise nothing of it is due earlier than before

    def _add(self, group: Group, start: int, event: Held, *, is_revocable: bool) -> None:
        """Take an event into a window; a window that no event leaves keeps what is needed of its events."""
        contents = group.windows.get(start)
        before = 0 if contents is None else contents.rows
        if contents is None:
            is_held = is_revocable or self._is_held
            contents = Contents(self.body.values) if is_held else Folded(self.body.values)
            group.windows[start] = contents
        contents.add(event)
        if isinstance(contents, Contents) and self.body.window.kind == "last" and before == self.body.window.size:
            contents.remove_first()
        self._held += contents.rows - before

    def _text_of(self, group: tuple[Scalar, ...]) -> str:
        """The text of a group; only texts of groups of texts are kept, as numbers may be equal and have other texts."""
        known = self._texts.get(group)
        if known is not None:
            return known
        text = group_text(group)
        if all(one is None or isinstance(one, str) for one in group):
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            self._texts[group] = text
        return text

    def _window_of(self, group: Group) -> Window:
        """The window of a group, which is that of its row where rows have windows."""
        if not self.body.window.column:
            return self.body.window
        duration = group.values[-1]
        if duration not in self._windows:
            self._windows[duration] = self.body.window.of_row(duration)
        return self._windows[duration]

    def _starts(self, group: Group, time_us: int, now_us: int) -> range | tuple[int, ...]:
        """The windows in which an event of a time counts; empty: it is too late."""
        window = self._window_of(group)
        if window.kind == "sliding":
            return _ONLY if now_us - time_us < window.size else ()
        only = group.only
        match window.kind:
            case "tumbling" | "hopping":
                last = time_us // window.every_us * window.every_us
                first = max(last - window.size + window.every_us, _first_open(now_us, window.size, window.every_us))
                return range(first, last + 1, window.every_us)
            case "session":
                oldest_us = time_us if only is None else only.oldest_us
                is_in = now_us - time_us < window.size or (only is not None and oldest_us - time_us < window.size)
            case "last":
                is_in = only is None or only.rows < window.size or only.oldest_us <= time_us
            case _:
                is_in = True
        return _ONLY if is_in else ()

    def _retract(self, row: Row, place: int) -> None:
        """Take an event out of the windows of the groups of its key."""
        for text in list(self._of_key.get(row.key_hash, ())):
            group = self._groups[text]
            now_us = max(row.time_us, group.clock_us, self._now_us)
            self._bring(group, now_us)
            held = [(start, one) for start, one in group.windows.items() if isinstance(one, Contents)]
            found = [start for start, contents in held if contents.retract(row.retracts)]
            self._held -= len(found)
            for start in found:
                if start in self._overall:
                    self._overall[start].retract(row.retracts)
                if not group.windows[start].rows:
                    del group.windows[start]
            if found and not self.body.window.is_fixed:
                self._changed(group, now_us, place, row.id)
            self._settle(group)

    def _end_key(self, key_hash: int, time_us: int, place: int) -> None:
        """End the windows that end with the transactions of a key."""
        if self.body.window.kind not in ("transaction", "last"):
            return
        for text in list(self._of_key.get(key_hash, ())):
            group = self._groups[text]
            now_us = max(time_us, group.clock_us)
            self._bring(group, now_us)
            self._flush(group)
            self._end_window(group, now_us, place)
            group.past.clear()
            self._settle(group)

    def _pass(self, now_us: int) -> None:
        """Bring all groups in which something is due to a time."""
        while self._due and self._due[0][0] <= now_us:
            noted_us, text = heappop(self._due)
            group = self._groups.get(text)
            if group is None or group.noted_us != noted_us:
                continue
            group.noted_us = None
            if self._due_us(group) == noted_us:
                self._bring(group, noted_us)
            self._settle(group)
        self._now_us = max(self._now_us, now_us)

    def _due_us(self, group: Group) -> int | None:
        """When time alone changes something of a group."""
        found = [group.due_us(self._window_of(group))]
        if group.pending_us is not None:
            found.append(group.pending_us + 1)
        elif not group.windows and group.past:
            found.append(group.past[-1][0] + self._longest_us)
        return min((one for one in found if one is not None), default=None)

    def _settle(self, group: Group) -> None:
        """Forget a group of which nothing is left, or note when something of it is due."""
        due_us = self._due_us(group)
        if due_us is not None and not (not group.windows and group.pending_us is None and due_us <= group.clock_us):
            if group.noted_us is None or due_us < group.noted_us:
                group.noted_us = due_us
                heappush(self._due, (due_us, group.text))
        elif not group.windows:
            del self._groups[group.text]
            texts = self._of_key[group.key_hash]
            del texts[group.text]
            if not texts:
                del self._of_key[group.key_hash]

    def _bring(self, group: Group, now_us: int) -> None:
        """Bring a group to a time: events leave, and windows end, each at its own time."""
        while (due_us := group.due_us(self._window_of(group))) is not None and due_us <= now_us:
            if group.pending_us is not None and group.pending_us < due_us:
                self._flush(group)
            self._expire(group, due_us)
        if group.pending_us is not None and group.pending_us < now_us:
            self._flush(group)
        group.clock_us = max(group.clock_us, now_us)

    def _expire(self, group: Group, due_us: int) -> None:
        """What happens to a group when a time is due."""
        group.clock_us = max(group.clock_us, due_us)
        window = self._window_of(group)
        if window.is_fixed:
            self._close(group, due_us - window.size, due_us)
        elif window.kind == "session":
            self._flush(group)
            self._end_window(group, due_us, 0)
        elif isinstance(only := group.only, Contents):
            before = only.rows
            only.remove_until(due_us - window.size)
            self._held -= before - only.rows
            if not only.rows:
                del group.windows[ONLY]
            self._changed(group, due_us, 0, "")

    def _changed(self, group: Group, time_us: int, place: int, cause: str) -> None:
        """Evaluate a group whose window has changed, now or after all events of the time."""
        if not self._is_simultaneous:
            self._evaluate(group, time_us, place, cause)
            return
        group.pending_id = cause or (group.pending_id if group.pending_us == time_us else "")
        group.pending_us = time_us

    def _flush(self, group: Group) -> None:
        """Evaluate a group after all events of its pending time."""
        if group.pending_us is not None:
            time_us, cause = group.pending_us, group.pending_id
            group.pending_us, group.pending_id = None, ""
            self._evaluate(group, time_us, 0, cause)

    def _evaluate(self, group: Group, time_us: int, place: int, cause: str) -> None:
        """Note the values of a group whose window has changed."""
        only = group.only
        if self._holds is None:
            if cause and self.body.emits_each and only is not None:
                self._step(group, time_us, place, ("each", cause), only)
            return
        self._step(group, time_us, place, ("changed", cause), only)

    def _close(self, group: Group, start: int, time_us: int) -> None:
        """Report a fixed window at its end, or at the end of the input."""
        contents = group.windows.pop(start)
        self._held -= contents.rows
        end_us = start + self.body.window.size
        self._step(group, time_us, 0, ("window", str(start)), contents, (start, end_us))

    def _end_window(self, group: Group, time_us: int, place: int) -> None:
        """Report a window that ends as a whole, at its end."""
        only = group.windows.pop(ONLY, None)
        if only is not None:
            self._held -= only.rows
            first_us = only.oldest_us
            self._step(group, time_us, place, ("ended", str(first_us)), only, (first_us, time_us))

    def _step(
        self,
        group: Group,
        time_us: int,
        place: int,
        what: tuple[StepKind, str],
        contents: WindowContents | None,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        """Note the values of a group at a time, and what the condition reads besides."""
        values = self._nothing if contents is None else contents.values()
        at_us = bounds[1] if what[0] == "window" and bounds is not None else time_us
        more: tuple[Scalar, ...] = ()
        having = self.body.having
        if having is not None and (having.earlier or having.overall):
            more = self._read_besides(having, group, at_us, 0 if bounds is None else bounds[0])
        if self._longest_us:
            is_over = contents is None or what[0] == "ended"
            group.remember(at_us, None if is_over else values, self._longest_us)
        shown = contents.newest(self.body.events) if self.body.events and contents is not None else []
        errors = {} if contents is None else contents.errors()
        self._steps.append(Step(group, time_us, place, *what, contents is None, values, more, shown, bounds, errors))

    def _read_besides(self, having: Having, group: Group, time_us: int, start: int) -> tuple[Scalar, ...]:
        """Earlier values of a group and values over all groups, in the order of ``Having.names``."""
        found: list[Scalar] = []
        for one in having.earlier:
            past = group.at(time_us - one.ago_us, is_exact=self.body.window.is_fixed)
            found.append(None if past is None else past[self._places[one.of]])
        if having.overall:
            of_all = self._overall_values(time_us, start)
            found += [of_all[self._places[of]] for _, of in having.overall]
        return tuple(found)

    def _add_overall(self, start: int, event: Held) -> None:
        if self.body.having is not None and self.body.having.overall:
            if start not in self._overall:
                self._overall[start] = Contents(self.body.values)
            self._overall[start].add(event)

    def _overall_values(self, time_us: int, start: int) -> tuple[Scalar, ...]:
        """The values over all groups at a time."""
        window = self.body.window
        if window.is_fixed:
            for old in [one for one in self._overall if one + window.size < time_us]:
                del self._overall[old]
        elif start in self._overall:
            self._overall[start].remove_until(time_us - window.size)
        return self._overall[start].values() if start in self._overall else self._nothing


def _first_open(now_us: int, size: int, every_us: int) -> int:
    """The beginning of the first fixed window that ends after a time."""
    return ((now_us - size) // every_us + 1) * every_us if now_us > NEVER_US else NEVER_US
