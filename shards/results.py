"""Kinds of results, which are the rows that leave a shard: how each kind is counted, listed and delivered.

The sink, lists, counters, webhooks and backtests loop over the table of kinds (``shards.RESULT_KINDS``). Each kind of
operator declares its own results; this module has the results of the platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultMetric:
    """The exported metric that counts results of a kind.

    Attributes:
        labels: Members of ``ResultKind.counted_by`` that become labels. Counts are summed over the other members.
    """

    name: str
    meaning: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKind:
    """One kind of result. Names are stored and never change.

    Attributes:
        name: Name in rows. The id of each row is hashed from it, among others.
        plural: Name of the list of these results. It is empty if they are not listed.
        title: Plural in texts for people.
        subject: Member of a result that names its operator. A result may lack it.
        counted_by: Members of a result that form its counter's name, the stream first. The parts of a list are joined.
        counts_for: Name of another kind whose counters these results increase, each row by its ``count``. If it is
            empty, they have counters of their own.
        delivered_as: ``type`` of the body that webhooks receive. It is empty if these results are not delivered.
        is_usual: Whether a webhook that chooses no kinds receives these results.
        graded_by: Kind of the operators whose severity these results have. It is empty if they have no severity.
        is_main: Whether runs count these results by operator, and label their differences without the kind.
        members: The members that the body for webhooks may have.
        stops: Whether such a result suspends its operator in all shards.
        in_backtests: Whether backtests list these results, only count them, or ignore them.
        same_by: The members by which results of two sets of rules are compared. If it is empty, they are not compared.
            The member named by ``subject`` is compared after mapping it to the operator's counterpart.
        shown: The members that runs show besides the stream, in this order. If it is empty, these are all but ``type``
            and ``id``.
        ordered_by: The members by which runs sort results of a stream. If it is empty, they stay in the order in which
            they were made.
        timed_by: The member with the event time by whose hour results are counted. If it is empty, there are no counts
            by hour.
    """

    name: str
    plural: str = ""
    title: str = ""
    subject: str = "pattern"
    counted_by: tuple[str, ...] = ()
    counts_for: str = ""
    delivered_as: str = ""
    is_usual: bool = False
    graded_by: str = ""
    is_main: bool = False
    members: frozenset[str] = frozenset()
    stops: bool = False
    in_backtests: Literal["listed", "counted", "no"] = "no"
    same_by: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    ordered_by: tuple[str, ...] = ()
    timed_by: str = ""
    metric: ResultMetric | None = None

    @property
    def member(self) -> str:
        """The plural name in the form of a JSON member."""
        return self.plural.replace("-", "_")

    def subject_of(self, body: Mapping[str, Any]) -> str:
        """Return the name of a result's operator. It is empty if the result has none."""
        return body.get(self.subject) or ""

    def counter_of(self, body: Mapping[str, Any]) -> str:
        """Return the name of a result's counter. It is a JSON list of the values of ``counted_by`` as texts."""
        return orjson.dumps([_as_text(body.get(name)) for name in self.counted_by]).decode()

    def counted(self, counter: str | bytes) -> dict[str, str]:
        """Split the name of a counter into the members of ``counted_by``.

        A member is empty if the counter comes from an earlier release that did not count by it.
        """
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
    same_by=("stream", "into", "type", "time", "key", "data", "source_key"),
    shown=("id", "type", "time", "key", "data"),
    ordered_by=("time", "id"),
    metric=ResultMetric(
        name="derived_events", meaning="Events of derived streams.", labels=("stream", "pattern", "into")
    ),
)
"""An event of a derived stream; ``stream`` is the stream of its operator, ``into`` the derived stream.

``rekeyed``: whether its key differs from that of its source, so that it reaches the derived stream through the log.
"""

REKEYED = ResultKind(name="rekeyed")
"""Events of a derived stream with keys of their own, which the sink appends to the log.

The body is the wire form of an ``EventBatch``, the subject is the derived stream.
"""

STATS = ResultKind(name="stats")
"""Statistics of a shard about a micro-batch, for the driver only."""

ANSWER = ResultKind(name="answer")
"""A shard's answer to a question in the log; neither listed nor delivered."""


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)
