"""The results of ``forestall.match``, as frames of the same kind as the events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import orjson
import pyarrow as pa

from forestall.errors import FrameRefused, ResultsNotKept
from forestall.frames import Back
from forestall.match_columns import MatchForm
from forestall.row_columns import table_of_results
from forestall.showing import Picture, ShownEvent, process_picture, result_html, time_line
from service import StreamReport
from streams import EventBatch, key_hash

if TYPE_CHECKING:
    from workflows import WorkflowModel  # slow to import, and rarely needed

FrameT = TypeVar("FrameT")


class ResultLists(ABC, Generic[FrameT]):
    """The results of a run, as lists: a frame for each kind of result."""

    @cached_property
    def matches(self) -> FrameT:
        """A row per match: pattern, key, times, columns of RETURN, and a column of event ids for each alias."""
        return self._kept("matches")

    @cached_property
    def terminations(self) -> FrameT:
        """A row per early termination: pattern, key, the deciding event and the reason."""
        return self._kept("terminations")

    @cached_property
    def deviations(self) -> FrameT:
        """A row per transaction that breaks a constraint: key, event, the constraints and the reason."""
        return self._kept("deviations")

    @cached_property
    def timeouts(self) -> FrameT:
        """A row per partial match that was still incomplete when its WITHIN had passed."""
        return self._kept("timeouts")

    @cached_property
    def corrections(self) -> FrameT:
        """A row per match that was emitted early and retracted later."""
        return self._kept("corrections")

    @abstractmethod
    def _kept(self, output: str) -> FrameT:
        """Return the list of results named ``output``, as a frame. A list that was not kept is an error."""


@dataclass(frozen=True, kw_only=True)
class MatchResult(ResultLists[FrameT]):
    """The results of patterns over a table of events, as frames of the same kind.

    Attributes:
        outputs: The lists that were kept.
        notices: Probable mistakes in patterns, constraints and events, in words.
    """

    outputs: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    @abstractmethod
    def stats(self) -> Mapping[str, int]:
        """The counts of ``forestall match``: events, matches, early terminations and more."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document of ``forestall match --output json``. On Spark, this is an error."""
        raise _elsewhere()

    def table(self, output: str) -> pa.Table:
        """Return a list of results as an Arrow table. On Spark, this is an error."""
        raise _elsewhere()

    def timeline(self, key: str) -> Picture:
        """Return the time line of a transaction, with its bound events. On Spark, this is an error.

        Raises:
            FrameRefused: No event has the key.
        """
        raise _elsewhere()

    def picture(self) -> Picture:
        """Return the followed model, with the number of events of each type. On Spark, this is an error.

        Raises:
            FrameRefused: The call had no ``workflow``.
        """
        raise _elsewhere()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def _kept(self, output: str) -> FrameT:
        if output not in self.outputs:
            raise ResultsNotKept(f"{output} were not kept; add {output!r} to the outputs of the call", output=output)
        return self._frame(output)

    @abstractmethod
    def _frame(self, output: str) -> FrameT: ...


@dataclass(frozen=True, kw_only=True)
class LocalMatchResult(MatchResult[FrameT]):
    """The results of a run in this process."""

    report: StreamReport = field(repr=False)
    form: MatchForm = field(repr=False)
    back: Back[FrameT] = field(repr=False)
    events: EventBatch = field(repr=False)
    model: WorkflowModel | None = field(repr=False, default=None)

    @property
    def stats(self) -> Mapping[str, int]:
        return asdict(self.report.stats)

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = orjson.loads(self.report.to_json())
        return document

    def table(self, output: str) -> pa.Table:
        return table_of_results(self.report, output, self.form)

    def _frame(self, output: str) -> FrameT:
        is_match = output == "matches"
        return self.back(self.form.coded_table(self.report.lanes) if is_match else self.table(output))

    def __repr__(self) -> str:
        stats = self.report.stats
        return (
            f"<{stats.events} events, {stats.matches} matches, {stats.endings} terminated early, "
            f"{stats.deviations} deviating transactions>"
        )

    def timeline(self, key: str) -> Picture:
        rows = np.flatnonzero(self.events.key_hashes == key_hash(str(key)))
        if not len(rows):
            raise FrameRefused(f"no event has the key {key!r}", key=str(key))
        marks: dict[str, list[str]] = {}
        for match in (match for match in self.report.each_match() if match["key"] == str(key)):
            for alias, ids in match["bindings"].items():
                for identity in ids:
                    marks.setdefault(identity, []).append(alias)
        shown_events = [
            ShownEvent(event.type, event.time_us, event.id, list(dict.fromkeys(marks.get(event.id, ()))))
            for event in self.events.take(rows).to_events()
        ]
        return time_line(str(key), shown_events)

    def picture(self) -> Picture:
        if self.model is None:
            raise FrameRefused("there is no model to draw; give one as workflow")
        counts = np.bincount(self.events.type_codes, minlength=len(self.events.type_names)).tolist()
        return process_picture(self.model, dict(zip(self.events.type_names, counts, strict=True)))

    def _repr_html_(self) -> str:
        output = next((name for name in self.outputs if len(self.table(name))), "matches")
        table = self.table(output) if output in self.outputs else None
        picture = "" if self.model is None else self.picture().svg
        return result_html(repr(self)[1:-1], output, table, self.notices, picture)


def _elsewhere() -> FrameRefused:
    return FrameRefused(
        "the events are on Spark, not in this process; match the transactions to show as a pandas frame"
    )
