"""Results of the patterns of one stream, as the JSON document of ``forestall match``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import orjson

from nfa import LaneOutput, MatcherStats, Overflow
from service.runs.match_text import matches_text
from service.runs.results import OLD_LISTS, document_of, ordered
from service.runs.running import MeasuredRun
from shards import PatternKind
from streams import shown_time

_MATCHES = ("alert", "suppressed-alert")
_KINDS = {
    kind.member: kind for kind in PatternKind.result_kinds if kind.in_backtests != "no" and kind.name not in _MATCHES
}
LISTS = ("matches", *_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowUse:
    """How a run uses a workflow.

    With the ``mode`` ``exact``, the run compares traces with the automaton of the workflow. With ``tables``, it
    compares them with the constraints that hold in the workflow.
    """

    mode: Literal["exact", "tables"]
    method: str
    states: int | None

    def to_document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class StreamReport:
    """The results of a run of one stream. Matches are in ``lanes``, and other results in ``rows``, as kind and body.

    ``overflow`` counts the matches lost beyond a limit, and ``duplicates`` the events with repeated ids. ``suppressed``
    counts the suppressed matches, or is None if no pattern suppresses matches.
    """

    lanes: tuple[LaneOutput, ...] = field(repr=False)
    rows: tuple[tuple[str, dict[str, Any]], ...]
    overflow: tuple[Overflow, ...]
    stats: MatcherStats
    with_returns: frozenset[str]
    late: int | None = None
    lateness: MeasuredRun | None = None
    workflow: WorkflowUse | None = None
    duplicates: int = 0
    suppressed: int | None = None

    def bodies(self, name: str) -> list[dict[str, Any]]:
        """Return the results in the list ``name``, in the order of ``ordered``. The list must not be ``matches``."""
        return ordered(_KINDS[name], (body for kind, body in self.rows if kind == _KINDS[name].name))

    @cached_property
    def matches(self) -> Sequence[dict[str, Any]]:
        """The matches in the form of the JSON document, sorted by end, start and bindings."""
        return list(self.each_match())

    def each_match(self) -> Iterator[dict[str, Any]]:
        for part in self._matches_text():
            yield from orjson.loads(b"".join([b"[", part.removesuffix(b","), b"]"]))

    def _matches_text(self) -> list[bytes]:
        return matches_text(self.lanes, self.with_returns)

    def to_json(self) -> bytes:
        """Return the JSON of ``forestall match --output json``.

        The format is public, so the changelog must list renamed members.
        """
        rest = orjson.dumps(self._rest()).removeprefix(b"{")
        return b"".join([b'{"matches":[', *self._matches_text(), b"],", rest])

    def _rest(self) -> dict[str, Any]:
        lists = {name: [document_of(kind, body) for body in self.bodies(name)] for name, kind in _KINDS.items()}
        return {
            **lists,
            **{old: lists[name] for old, name in OLD_LISTS.items()},
            "overflow": [
                {
                    "pattern": overflow.pattern,
                    "key": overflow.key or None,
                    "event": overflow.event_id or None,
                    "time": shown_time(overflow.time_us) if overflow.event_id else None,
                    "dropped": overflow.dropped,
                    "runs": overflow.runs,
                }
                for overflow in self.overflow
            ],
            "stats": asdict(self.stats),
            **({} if self.workflow is None else {"workflow": self.workflow.to_document()}),
            **({} if self.late is None else {"late": self.late}),
            **({} if self.lateness is None else {"lateness": asdict(self.lateness)}),
            **({"duplicates": self.duplicates} if self.duplicates else {}),
            **({} if self.suppressed is None else {"suppressed": self.suppressed}),
        }
