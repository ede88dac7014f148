"""Kinds of results: what leaves a shard, how it is counted and listed, and who gets it.

The sink, lists, counters, webhooks and backtests loop over the table of kinds (``shards.RESULT_KINDS``). A kind of
operator declares its own results; those of the platform are in this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultMetric:
    """The counter of a kind of result for monitoring.

    Attributes:
        name: Without prefix and suffix.
        meaning: One sentence.
        labels: Members of ``ResultKind.counted_by``; the counts are summed over the others.
    """

    name: str
    meaning: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKind:
    """One kind of result. Names are stored and never change.

    Attributes:
        name: As in rows; a part of what makes their ids.
        plural: Where it is listed: the name of its list; empty: it is not listed.
        title: What people call several of them.
        subject: Member of a result that names its operator; it may be missing.
        counted_by: Members of a result that make its counter, the stream first; a list counts as its parts.
        counts_for: Name of the kind whose counters it raises: each stands for ``count`` results; empty: its own.
        delivered_as: ``type`` of the body that webhooks get; empty: it is not delivered.
        is_usual: Whether a webhook gets it that does not name kinds.
        is_graded: Whether it has the severity of its operator.
        members: What the body for webhooks may have.
        stops: Whether its operator is suspended in all shards because of it.
        in_backtests: Whether backtests list it, only count it, or pass over it.
        metric: Its counter for monitoring, if it has one.
    """

    name: str
    plural: str = ""
    title: str = ""
    subject: str = "pattern"
    counted_by: tuple[str, ...] = ()
    counts_for: str = ""
    delivered_as: str = ""
    is_usual: bool = False
    is_graded: bool = False
    members: frozenset[str] = frozenset()
    stops: bool = False
    in_backtests: Literal["listed", "counted", "no"] = "no"
    metric: ResultMetric | None = None

    @property
    def member(self) -> str:
        """The plural as the name of a JSON member."""
        return self.plural.replace("-", "_")

    def subject_of(self, body: Mapping[str, Any]) -> str:
        """Name of the operator that a result is of; empty where it is of none."""
        return body.get(self.subject) or ""

    def counter_of(self, body: Mapping[str, Any]) -> str:
        """The counter of a result as it is stored: the values of ``counted_by`` as a JSON list of strings."""
        return orjson.dumps([_as_text(body.get(name)) for name in self.counted_by]).decode()

    def counted(self, counter: str | bytes) -> dict[str, str]:
        """The values of a counter by ``counted_by``; an earlier release may have counted by fewer."""
        values: list[str] = orjson.loads(counter)
        return dict(zip(self.counted_by, [*values, *[""] * (len(self.counted_by) - len(values))], strict=True))


DEAD_LETTER = ResultKind(
    name="dead-letter",
    plural="dead-letters",
    title="dead letters",
    counted_by=("stream", "code", "pattern"),
    in_backtests="listed",
    metric=ResultMetric(name="dead_letters", meaning="Events and entries not taken.", labels=("stream", "code")),
)
DERIVED = ResultKind(
    name="derived",
    plural="derived-events",
    title="derived events",
    counted_by=("stream", "pattern", "into"),
    delivered_as="derived",
    members=frozenset("id stream into type time key data pattern version source_key rekeyed".split()),
    in_backtests="listed",
    metric=ResultMetric(
        name="derived_events", meaning="Events of derived streams.", labels=("stream", "pattern", "into")
    ),
)
"""An event of a derived stream; ``stream`` is where it was found, ``into`` where it goes.

``rekeyed``: its key is not that of what it was made from, so it reaches its stream through the log.
"""

STATS = ResultKind(name="stats")
"""What a shard did in a micro-batch, for the driver only."""

ANSWER = ResultKind(name="answer")
"""What a shard answers to a question of the log; it is neither listed nor delivered."""


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)
