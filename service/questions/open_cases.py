"""Open transactions: the merged answers of all shards, oldest transaction first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nfa import parse_pattern
from service.errors import CaseFilterRefused
from service.questions.asking import Questions, ShardQuestion
from service.runtime import Stores
from shards import route_of
from workflows import InvalidWorkflow, parse_duration_us

_MOST_TYPES = 100  # number of event types in a report's counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFilter:
    """A filter that selects open transactions.

    Attributes:
        state: ``open`` selects all transactions, ``matching`` those with a partial match, and ``deviating`` those with
            a broken constraint.
        older_than: The least time that the transaction has been open: seconds, or a duration such as ``2d``.
        waits_for: An event type. The furthest partial match of a pattern waits for an event of this type.
    """

    stream: str
    pattern: str | None = None
    state: Literal["open", "matching", "deviating"] = "open"
    older_than: str | None = None
    key: str | None = None
    last_type: str | None = None
    waits_for: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCaseReport:
    """The open transactions of a stream.

    Attributes:
        positions: The position of the log at which each shard answered.
        total: The number of open transactions.
        matching: The number of selected transactions, including those beyond the limit.
        unnamed: The number of open transactions whose key is unknown. An earlier release saved them, and they have had
            no event since.
        traces: The selected transactions, oldest first, in the form of the shards' answers.
    """

    stream: str
    positions: Mapping[int, str]
    time_us: int | None
    total: int
    matching: int
    unnamed: int
    by_last_type: Mapping[str, int]
    traces: Sequence[Mapping[str, Any]]


class OpenCaseLibrary:
    """Lists open transactions by asking the shards."""

    def __init__(self, stores: Stores, questions: Questions) -> None:
        self._stores = stores
        self._questions = questions

    def checked(self, case_filter: CaseFilter) -> Mapping[str, Any]:
        """Check a filter, and return the question that asks the shards for the selected transactions.

        Refused if the pattern belongs to another stream or is matched by a further key, or if the duration is invalid.
        """
        declaration = self._stores.registry.stream(case_filter.stream)
        if case_filter.pattern is not None:
            record = self._stores.registry.pattern(case_filter.pattern)
            if record.stream != case_filter.stream:
                raise CaseFilterRefused(f"the pattern {case_filter.pattern!r} is of the stream {record.stream!r}")
            if route := route_of(parse_pattern(record.text), declaration):
                raise CaseFilterRefused(
                    f"the pattern {case_filter.pattern!r} is matched by the further key {route!r}; transactions are "
                    "those of the correlation key, so it has no partial matches in them"
                )
        return {
            "about": "traces",
            "pattern": case_filter.pattern,
            "key": case_filter.key,
            "last_type": case_filter.last_type,
            "waits_for": case_filter.waits_for,
            "state": case_filter.state,
            "older_than_us": 0 if case_filter.older_than is None else older_than_us(case_filter.older_than),
            "limit": case_filter.limit,
        }

    async def list(self, case_filter: CaseFilter, question: Mapping[str, Any]) -> OpenCaseReport:
        """Return the transactions that a filter selects. ``question`` is the result of ``checked`` for this filter."""
        shard_question = ShardQuestion(
            stream=case_filter.stream, operator="pattern", question=question, key=case_filter.key
        )
        replies = await self._questions.ask(lambda _: shard_question)
        answers = [reply["answer"] for reply in replies]
        traces = sorted(
            (trace for answer in answers for trace in answer["traces"]),
            key=lambda case: (case["first_us"], case["key"]),
        )
        return OpenCaseReport(
            stream=case_filter.stream,
            positions={reply["shard"]: reply["position"] for reply in replies},
            time_us=max((answer["time_us"] for answer in answers if answer["time_us"] is not None), default=None),
            total=sum(answer["open"] for answer in answers),
            matching=sum(answer["matching"] for answer in answers),
            unnamed=sum(answer["unnamed"] for answer in answers),
            by_last_type=_summed(answer["by_last_type"] for answer in answers),
            traces=traces[: case_filter.limit],
        )


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part)
    return dict(counts.most_common(_MOST_TYPES))


def older_than_us(text: str) -> int:
    """Convert a number of seconds, or a duration such as ``2d`` or ``90 min``, to microseconds."""
    try:
        return parse_duration_us(f"{text} s" if text.replace(".", "", 1).isdecimal() else text)
    except InvalidWorkflow as error:
        raise CaseFilterRefused(f"older_than: {error.message}; a number alone is seconds") from error
