"""The index that answers questions over the events of a window, without knowing groups and filters beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from aggregates.asking.answers import Answer
from aggregates.asking.costs import MEASURED, CostModel
from aggregates.asking.questions import HeldWindow, Question
from aggregates.asking.ring import EventColumns, EventRing, FoundEvents
from aggregates.asking.totals import GroupTotals
from aggregates.asking.tuning import Tuner
from aggregates.asking.values import NULL, UNKNOWN, Column, ValueCodes, numbers_in
from aggregates.errors import AggregateStateError
from aggregates.scalars import Scalar

_FORMAT = 1
_MOVED = 4_096  # events that each call moves to another configuration
_LEAST_VALUES = 1_024  # no value is forgotten while an attribute has fewer values


class QuestionIndex:
    """An index of the events in a window, which answers questions about them. Events are stored as columns.

    The index has partitions by the attributes that questions fix. Its configuration (address bits of each attribute)
    adapts to the questions. Answers depend neither on the configuration nor on how events were divided into calls. The
    window ends at the latest known event time, or at a later time in the question.
    """

    def __init__(self, window: HeldWindow, *, model: CostModel = MEASURED, is_tuned: bool = True) -> None:
        self._window, self._model, self._is_tuned = window, model, is_tuned
        self._values = [ValueCodes() for _ in window.attributes]
        self._kept = [_LEAST_VALUES] * len(window.attributes)
        self._ring = EventRing(len(window.attributes), len(window.measures))
        filtered = [place for place, name in enumerate(window.attributes) if name not in window.unfiltered]
        self._tuner = Tuner(len(window.attributes), model, filtered)
        self._now_us: int | None = None
        self.questions = self.migrations = 0

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def size_bytes(self) -> int:
        """The bytes of the stored columns, and of the chains and partitions of the index.

        The distinct values of attributes are not counted.
        """
        return self._ring.size_bytes

    def insert(self, times_us: NDArray[np.int64], columns: Mapping[str, Column]) -> None:
        """Add events in any order. Absent columns are null, and events older than the window are ignored."""
        events = self._in_order(self._encoded(times_us, columns))
        self._tuner.note_events(len(events))
        if len(events):
            self._place(events)
        self._forget_values()
        self.tune()

    def expire(self, time_us: int) -> None:
        """Advance the time, and remove the events that leave the window."""
        self._advance(time_us)
        self._forget_values()

    def ask(self, question: Question) -> Answer:
        """Answer a question about the events that the index holds.

        Raises:
            QuestionRefused: The answer has too many groups.
        """
        end_us = self._end_us(question)
        start = self._start(question, end_us)
        rows = self._ring.end - start
        fixed = [self._window.attributes.index(name) for name in question.where]
        codes = [
            self._values[place].code_of(value) for place, value in zip(fixed, question.where.values(), strict=True)
        ]
        if NULL in codes or UNKNOWN in codes:
            matching = FoundEvents(np.zeros(0, np.int32), 0, 0)
        else:
            matching = self._ring.find(np.array(fixed, np.int64), np.array(codes, np.int32), start, self._model)
        answer = self._answer(question, matching, end_us, rows)
        self.questions += 1
        self._tuner.note_question(sum(1 << place for place in fixed), rows)
        self.tune()
        return answer

    def keep(self, attribute: str, is_kept: Callable[[Sequence[Scalar]], NDArray[np.bool_]]) -> None:
        """Remove all events whose value of ``attribute`` does not pass ``is_kept``.

        ``is_kept`` gets all known values of the attribute, and returns a mask over them.
        """
        place = self._window.attributes.index(attribute)
        kept = is_kept(self._values[place].values)
        rest = self._ring.take_from(self._ring.first)
        self._ring.append(rest.at(np.flatnonzero(kept[rest.codes[:, place]])))

    def tune(self) -> None:
        """Continue a running move to another configuration. If none is running, assess whether a move would pay.

        ``insert`` and ``ask`` call this method.
        """
        if self._ring.unmoved:
            self._ring.move(_MOVED)
        elif self._is_tuned and self._tuner.is_due(len(self)):
            caps = np.array([len(values).bit_length() - 1 for values in self._values], np.int64)
            assessment = self._tuner.assess(self._ring.bits, len(self), caps)
            if assessment.is_worthwhile:
                self.configure(dict(zip(self._window.attributes, assessment.choice.configuration, strict=True)))

    def configure(self, bits: Mapping[str, int]) -> None:
        """Begin to move all events to the configuration ``bits``, which has the address bits by attribute.

        Questions are answered meanwhile.
        """
        self.migrations += 1
        self._ring.begin_move(tuple(bits.get(name, 0) for name in self._window.attributes))

    def explain(self) -> dict[str, Any]:
        """Describe the index as plain JSON: configuration, frequencies of questions, costs, and counts of its work."""
        workload, names, assessment = self._tuner.workload(len(self)), self._window.attributes, self._tuner.assessment
        shares = workload.requests / (workload.requests.sum() or 1.0)
        kinds = [
            {
                "where": [name for name, is_used in zip(names, uses, strict=True) if is_used],
                "share": round(share, 4),
                "events": round(rows),
            }
            for uses, share, rows in zip(workload.uses, shares.tolist(), workload.rows.tolist(), strict=True)
        ]
        explained = {
            "events": len(self),
            "bytes": self.size_bytes,
            "column_bytes": self._ring.column_bytes,
            "configuration": self._bits_of(self._ring.bits),
            "partitions": 1 << sum(self._ring.bits),
            "questions": self.questions,
            "asked_for": sorted(kinds, key=lambda kind: (-kind["share"], kind["where"])),
            "migrations": self.migrations,
            "still_to_move": self._ring.unmoved,
        }
        if assessment is not None:
            explained |= {"best": self._bits_of(assessment.choice.configuration), "chosen_by": assessment.choice.way}
            explained |= {"cost_ns": {"present": round(assessment.present), "best": round(assessment.best)}}
        return explained

    def _bits_of(self, configuration: tuple[int, ...]) -> dict[str, int]:
        bits = zip(self._window.attributes, configuration, strict=True)
        return {name: count for name, count in bits if name not in self._window.unfiltered}

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the state to save: plain JSON (the head), and the bytes of each kind of column by name (the sections).

        Links and partitions are not saved, because ``load`` builds them again.
        """
        held = self._ring.columns(self._ring.first, self._ring.end)
        head = {
            "format": _FORMAT,
            "events": len(held),
            "now_us": self._now_us,
            "bits": list(self._ring.bits),
            "questions": self.questions,
            "migrations": self.migrations,
            "tuner": self._tuner.dump(),
        }
        sections = {
            "times": held.times_us.tobytes(),
            "codes": held.codes.T.tobytes(),
            "measures": held.values.tobytes(),
            "values": orjson.dumps([values.values for values in self._values]),
        }
        return head, sections

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore the state that ``dump`` returned for an index with the same columns."""
        if head.get("format") != _FORMAT:
            raise AggregateStateError(f"a saved index of questions has the format {head.get('format')}, not {_FORMAT}")
        count, attributes, measures = head["events"], len(self._window.attributes), len(self._window.measures)
        values = orjson.loads(sections["values"])
        sizes = {"times": 8 * count, "codes": 4 * count * attributes, "measures": 8 * count * measures}
        if any(len(sections[name]) != size for name, size in sizes.items()) or len(values) != attributes:
            raise AggregateStateError("a saved index has other columns, or is cut off")
        self._values = [ValueCodes(some) for some in values]
        self._kept = [max(_LEAST_VALUES, 2 * len(some)) for some in self._values]
        self._ring = EventRing(attributes, measures)
        self._ring.begin_move(tuple(head["bits"]))
        codes = np.frombuffer(sections["codes"], np.int32).reshape(attributes, count)
        numbers = np.frombuffer(sections["measures"], np.float64).reshape(measures, count)
        self._ring.append(EventColumns(np.frombuffer(sections["times"], np.int64), codes.T, numbers))
        self._now_us, self.questions, self.migrations = head["now_us"], head["questions"], head["migrations"]
        self._tuner.load(head["tuner"])

    def _encoded(self, times_us: NDArray[np.int64], columns: Mapping[str, Column]) -> EventColumns:
        count, window = len(times_us), self._window
        codes = np.zeros((count, len(window.attributes)), np.int32)
        numbers = np.full((len(window.measures), count), np.nan)
        for place, name in enumerate(window.attributes):
            if name in columns:
                codes[:, place] = self._values[place].encoded(columns[name])
        for place, name in enumerate(window.measures):
            if name in columns:
                numbers[place] = numbers_in(columns[name])
        return EventColumns(np.asarray(times_us, np.int64), codes, numbers)

    def _advance(self, time_us: int) -> int:
        self._now_us = time_us if self._now_us is None else max(self._now_us, time_us)
        self._ring.expire(self._ring.number_after(self._now_us - self._window.span_us))
        return self._now_us

    def _in_order(self, events: EventColumns) -> EventColumns:
        """Advance the time to the newest event. Return the events that are in the window, sorted by time."""
        if not len(events):
            return events
        times_us = events.times_us
        now_us = self._advance(int(times_us.max()))
        events = events.at(np.flatnonzero(now_us - times_us < self._window.span_us))
        if (np.diff(events.times_us) < 0).any():
            events = events.at(np.argsort(events.times_us, kind="stable"))
        return events

    def _place(self, events: EventColumns) -> None:
        """Store events, sorted by time, at their places.

        Stored events that are later are removed and appended again.
        """
        ring = self._ring
        number = ring.number_after(int(events.times_us[0]))
        if number < ring.end:
            later = ring.take_from(number)
            times_us = np.concatenate([later.times_us, events.times_us])
            codes = np.concatenate([later.codes, events.codes])
            values = np.concatenate([later.values, events.values], axis=1)
            events = EventColumns(times_us, codes, values).at(np.argsort(times_us, kind="stable"))
        ring.append(events)

    def _end_us(self, question: Question) -> int | None:
        """Return the end of a question's window. Before the first event, the end is ``until_us``, which may be None."""
        if self._now_us is None or question.until_us is None:
            return question.until_us if self._now_us is None else self._now_us
        return max(self._now_us, question.until_us)

    def _start(self, question: Question, end_us: int | None) -> int:
        is_whole = question.window_us is None and end_us == self._now_us
        if end_us is None or is_whole:
            return self._ring.first
        window_us = self._window.span_us if question.window_us is None else question.window_us
        return self._ring.number_after(end_us - window_us)

    def _forget_values(self) -> None:
        """Forget the attribute values that no stored event has.

        The values of an attribute are examined once their number has doubled, or if no events are stored.
        """
        for place, values in enumerate(self._values):
            if len(values) >= 2 * self._kept[place] or (len(values) > 1 and not len(self._ring)):
                self._ring.recode(place, values.keep(self._ring.codes_in_use(place, len(values))))
                self._kept[place] = max(_LEAST_VALUES, len(values))

    def _answer(self, question: Question, matching: FoundEvents, end_us: int | None, rows: int) -> Answer:
        by = [self._window.attributes.index(name) for name in question.by]
        totals = GroupTotals(self._window, self._ring, self._values, matching.slots, by)
        return Answer(
            by=tuple(question.by),
            functions={name: value.function for name, value in question.values.items()},
            groups=totals.groups(),
            totals={name: totals.of(name, value) for name, value in question.values.items()},
            end_us=end_us,
            events=rows,
            compared=matching.compared,
            visited=matching.visited,
        )
