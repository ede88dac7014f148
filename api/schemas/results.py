"""Results with counters on the wire. Webhooks deliver corrections, deviations and suspensions in the same form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import Field

from api.wire import From, PageModel, Text, Time, WireModel
from service import USUAL_SEVERITY, Severity

Route: TypeAlias = Annotated[
    str | None, Field(description="Name of the further key whose value `key` is; null: `key` is the correlation key.")
]
Row: TypeAlias = Annotated[
    dict[str, str | int] | None,
    Field(description="Key of the row of FOR EACH ROW, by column; null: the pattern has no rows."),
]

Item = TypeVar("Item", bound=WireModel)
Count = TypeVar("Count", bound=WireModel)


class ResultList(PageModel[Item], Generic[Item, Count]):
    """Recent results of a kind, with counters of all results."""

    counts: list[Count]


class CorrectionModel(WireModel):
    """A retraction of an alert that was sent early, because the transaction later broke a constraint."""

    type: Literal["correction"] = Field("correction", description="Distinguishes corrections from other results.")
    id: str = Field(description="Id of the correction, the same each time it is found; the webhook-id.")
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    row: Row = None
    alert: str = Field(description="Id of the alert that does not hold.")
    bindings: dict[str, list[str]] = Field(description="Event ids by alias, as in the alert.")
    event: str = Field(description="Id of the event that the match must not have.")
    event_type: str
    time: Time
    reason: str
    severity: Severity = Field(USUAL_SEVERITY, description="Severity of its pattern when it was found.")


class CorrectionCount(WireModel):
    """The number of retracted alerts of a pattern."""

    stream: str
    pattern: str
    count: int


class CorrectionList(ResultList[CorrectionModel, CorrectionCount]):
    """Recent corrections, newest first, and the total number by pattern."""


class DeviationModel(WireModel):
    """An event that breaks the constraint set that its transaction follows."""

    type: Literal["deviation"] = Field("deviation", description="Distinguishes deviations from other results.")
    id: str
    stream: str
    key: str = Field(description="The transaction.")
    event: str = Field(description="Id of the event.")
    event_type: str
    time: Time
    version: int = Field(description="Version of the constraint set.")
    kind: str | None = Field(
        None,
        description="order: its type could no longer come; occurrence: types that exclude each other, required "
        "types included; obligation: a required type can no longer come; cycle: the required types "
        "cannot be ordered; rule: a rule is broken; workflow: the workflow that the stream follows "
        "does not allow it; unknown_type: the process has no such event; after_end: the transaction "
        "was over, by an end event or by the workflow. Null in deviations of earlier releases.",
    )
    constraints: list[str] = Field([], description="A minimal set of constraints that it breaks.")
    symbols: list[str] = Field([], description="Conditions of the constraint set that the event meets.")
    allowed: list[str] = Field(
        [], description="Types that the workflow allows instead, if the stream follows one exactly."
    )
    released: int = Field(
        0, description="Events that pruning had dropped in the transaction before; matches with them may be missing."
    )
    reason: str


class DeviationCount(WireModel):
    """The number of deviations of one kind by events of one type."""

    stream: str
    event_type: str
    kind: str
    count: int


class DeviationList(ResultList[DeviationModel, DeviationCount]):
    """Recent deviations, newest first, and the total number by event type and kind."""


class WorkBudgetModel(WireModel):
    """The work limits of a pattern: partial matches that events meet, and values that conditions read."""

    per_event: int = Field(description="Partial matches that each event of a transaction may meet without counting.")
    per_trace: int = Field(
        description="Further partial matches that a transaction may meet; beyond, the pattern is given up in it."
    )
    traces: int = Field(description="Transactions of one shard in which it may be given up; beyond, it is suspended.")
    forgiven_after: int = Field(
        description="Events of the stream in the shard after which such a transaction is no longer counted."
    )
    in_all: int | None = Field(
        None,
        description="Partial matches that events may meet in all transactions of one shard beyond `per_event` for each "
        "event of the stream; beyond, it is suspended. Null in suspensions that an older release has stored.",
    )


class SuspensionModel(WireModel):
    """The suspension of a pattern that was given up in too many transactions, or cost too much in all of them."""

    type: Literal["pattern.suspended"] = Field(
        "pattern.suspended", description="Distinguishes suspensions from other results."
    )
    id: str = Field(description="Id of the suspension, the same from every shard; the webhook-id.")
    stream: str
    pattern: str
    version: int = Field(description="The version that is suspended.")
    key: str = Field(description="The transaction in which it was given up last.")
    route: Route = None
    event: str = Field(description="Id of the event at which it was given up.")
    event_type: str
    time: Time = Field(description="Time of the event.")
    shard: int = Field(description="The shard that reported it; all shards stop.")
    budget: WorkBudgetModel
    reason: str = Field(description="The reason as a sentence, with advice.")
    severity: Severity = Field(USUAL_SEVERITY, description="Severity of its pattern when it was suspended.")


class DerivedEventModel(WireModel):
    """An event that a pattern with INTO has derived from a match."""

    id: str = Field(description="Id of the match that it was made from; the webhook-id.")
    stream: str = Field(description="The stream of the match.")
    into: str = Field(description="The derived stream of the event.")
    type: str
    time: Time = Field(description="When the match was detected.")
    key: str = Field(description="Its correlation key in the derived stream.")
    data: dict[str, Any] = Field(description="The columns of RETURN; of a retraction also `retracts`.")
    pattern: str
    version: int
    source_key: str = Field(description="The transaction in which the match was found.")
    rekeyed: bool = Field(description="Whether it has a key of its own, and so reached the stream through the log.")


class DerivedEventCount(WireModel):
    """The number of events that a pattern has derived for a stream."""

    stream: str
    pattern: str
    into: str
    count: int


class DerivedEventList(ResultList[DerivedEventModel, DerivedEventCount]):
    """Recent derived events, newest first, and the total number by pattern and derived stream."""


class SuspensionCount(WireModel):
    """The number of suspensions of a pattern."""

    stream: str
    pattern: str
    count: int


class SuspensionList(ResultList[SuspensionModel, SuspensionCount]):
    """Recent suspensions, newest first, and the total number by pattern."""


class TimeoutModel(WireModel):
    """A partial match that could still have completed when the window of its pattern had passed."""

    id: str
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    route: Route = None
    row: Row = None
    start: Time
    due: Time = Field(description="When the window had passed.")
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    missing: list[str] = Field(description="The steps without bound events.")


class TimeoutCount(WireModel):
    """The number of a pattern's partial matches that timed out with the same steps missing."""

    stream: str
    pattern: str
    missing_steps: Annotated[str, From("missing")] = Field(description="The steps, separated by commas.")
    count: int


class TimeoutList(ResultList[TimeoutModel, TimeoutCount]):
    """Recent timeouts, newest first, and the total number by missing steps."""


class EndingModel(WireModel):
    """The first event after which a pattern can no longer match in a transaction. It may be the end event."""

    id: str
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    row: Row = None
    event: str = Field(description="Id of the event.")
    event_type: str
    time: Time
    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    constraints: list[str] = Field(description="The minimal chain of constraints.")
    atom: str | None = Field(
        description="The step that became impossible; with NOT: a forbidden event that must now come."
    )
    reason: str


class EndingCount(WireModel):
    """The number of transactions in which a pattern could no longer match, for one reason."""

    stream: str
    pattern: str
    form: str
    chain: Annotated[str, From("constraints")] = Field(description="The constraints of the chain, separated by commas.")
    atom: str
    count: int


class EndingReason(WireModel):
    """The number of a pattern's early terminations for one reason."""

    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    chain: Annotated[str, From("constraints")] = Field(description="The constraints of the chain, separated by commas.")
    atom: str
    count: int


class EndingSummary(WireModel):
    """The number of transactions in which a pattern could no longer match, in total and by reason."""

    stream: str
    pattern: str
    total: int
    by_form: dict[str, int]
    reasons: list[EndingReason] = Field(description="The most frequent first.")

    @classmethod
    def of(cls, stream: str, pattern: str, counts: Sequence[Mapping[str, Any]]) -> Self:
        """Add up the counters of one pattern: in total, and by their ``form``.

        Reasons are sorted by count, the highest first.
        """
        by_form: Counter[str] = Counter()
        for count in counts:
            by_form[count["form"]] += count["count"]
        return cls(
            stream=stream,
            pattern=pattern,
            total=by_form.total(),
            by_form=dict(sorted(by_form.items())),
            reasons=[
                EndingReason.from_domain(count)
                for count in sorted(counts, key=lambda counter: counter["count"], reverse=True)
            ],
        )


class EndingSummaries(WireModel):
    """Early terminations of all patterns, by stream and pattern."""

    items: list[EndingSummary]

    @classmethod
    def from_domain(cls, counts: Sequence[Mapping[str, Any]]) -> Self:
        """Summarise all counters, which must be sorted by stream and pattern."""
        groups = groupby(counts, key=itemgetter("stream", "pattern"))
        return cls(items=[EndingSummary.of(stream, pattern, list(group)) for (stream, pattern), group in groups])


class HourCountModel(WireModel):
    """The number of results of a pattern in an hour."""

    hour: Time = Field(description="The beginning of the hour, in event time.")
    stream: str
    pattern: Annotated[Text, From("subject")] = Field(description="Null for deviations, which belong to no pattern.")
    count: int


class HourCounts(WireModel):
    """Counts by hour, the oldest hour first. Hours without results are left out."""

    since: Time | None = Field(description="The beginning of the first hour that was counted; null: nothing is.")
    items: list[HourCountModel]


class EndingList(ResultList[EndingModel, EndingCount]):
    """Recent early terminations, newest first, and the total number by reason."""
