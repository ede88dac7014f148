"""Operators that are registered as documents, on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Self

import orjson
from pydantic import ConfigDict, Field

from api.schemas.patterns import FirstStateMember, SkippedModel, State
from api.wire import From, PageModel, PartModel, Text, Time, WireModel, moment
from service import OperatorAnswer, Severity, SkippedBacklog


class NewOperator(WireModel):
    """An operator to register. These members are common to all kinds, and each kind defines further members."""

    model_config = ConfigDict(extra="allow")

    name: str
    stream: str | None = Field(
        None,
        description="The stream whose events it reads; not for kinds that name their streams elsewhere, such as joins.",
    )
    state: FirstStateMember = "active"
    severity: Severity | None = Field(None, description="Severity of its alerts (default: medium).")

    @property
    def document(self) -> dict[str, Any]:
        """The document that the operator's kind reads."""
        stream_member = {} if self.stream is None else {"stream": self.stream}
        return {"name": self.name, **stream_member, **(self.model_extra or {})}


class OperatorModel(WireModel):
    """A registered operator."""

    kind: str
    name: str
    stream: str
    version: int = Field(description="Counts from 1 for each name; another body is the next version.")
    body: dict[str, Any] = Field(description="The members that its kind defines.")
    severity: Severity = Field(description="Severity of its alerts.")
    state: State = Field(description="Only an active operator sees events.")
    route: Text = Field(
        description="The stream's further key by which its events are grouped; null: the correlation key."
    )
    created_at: Time
    suspension: dict[str, Any] | None = Field(
        description="Why it is suspended: the event, its key, and the reason as a sentence; null in other states. "
        "Another version, or `resume`, lets it see events again."
    )
    is_continued: bool = Field(description="Whether this version continues the state of the version before.")
    held_since: Annotated[Time, From("since_us")] = Field(
        description="Since when it has kept state: since this version, or an earlier one that it continues."
    )
    warnings: list[str] = Field(
        [],
        description="Probable mistakes, such as members without effect, in words; not in lists.",
    )

    skipped: SkippedModel | None = Field(
        default=None, description="The backlog that it skips, in the answer to `pause` with `now=true`; null elsewhere."
    )

    def with_skipped(self, skipped: SkippedBacklog | None) -> Self:
        return self.model_copy(update={"skipped": skipped and SkippedModel.from_domain(skipped)})


class OperatorResults(PageModel[dict[str, Any]]):
    """Recent results of an operator, with its counters."""

    counts: list[dict[str, Any]]


class OperatorExplanationModel(WireModel):
    """The explanation of an operator: how it runs, and its counts."""

    sentences: list[str] = Field(
        description="Sentences: the algorithm and why, how long events are kept, and when results are emitted."
    )
    statistics: dict[str, int] | None = Field(
        description="Counts of all shards as of their last reports; null until one has reported the operator."
    )
    waiting: int = Field(description="Events that wait for the event time of other inputs.")
    indexes: list[dict[str, Any]] = Field(
        description="The index for questions of each shard: its configuration, the mix of questions, costs, and "
        "migrations. Empty if the operator answers no questions, or the pipeline cannot answer now."
    )


class OperatorQuestion(WireModel):
    """A question over the events in the window of an operator. Omitted members do not restrict the answer."""

    by: list[str] = Field([], description="Attributes to group by; none: one group.")
    where: dict[str, str | bool | int | float | None] = Field(
        {}, description="Only events whose attributes have these values; null equals nothing."
    )
    values: list[str | dict[str, str]] | dict[str, str] = Field(
        [],
        description="Values to compute: names of the aggregate's values, or objects with new ones such as "
        '`{"x": "sum(price)"}`, over attributes by which questions group and arguments of its values; none: all.',
    )
    window: str | None = Field(None, description="Only events younger than this, such as `20 min`.")
    explain: bool = Field(False, description="Also describe the index of each shard.")

    @property
    def document(self) -> dict[str, Any]:
        """The members of the question that were given. Members that are null are left out."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


class OperatorAnswerModel(WireModel):
    """The answer to a question."""

    groups: list[dict[str, Any]] = Field(description="The groups in order, each with its attributes and values.")
    events: int = Field(description="Events in the window of the question, whether or not they pass the filters.")
    compared: int = Field(description="Events that were compared to find the answer.")
    time: Time | None = Field(description="The end of the window; null before the first event of the stream.")
    positions: dict[int, str] = Field(description="The position of each shard's log as of which the answer is exact.")
    indexes: list[dict[str, Any]] = Field(
        description="With `explain`, of each shard: the configuration of its index, the mix of questions, and costs."
    )

    @staticmethod
    def json_of(answer: OperatorAnswer) -> bytes:
        """Return the JSON wire form of an answer. Groups are written without validating each of them."""
        members = dict(answer.members)
        time = moment(members.pop("time_us"))
        document = {**members, "time": time, "positions": answer.positions}
        return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)


class OperatorList(PartModel[OperatorModel]):
    """Operators of one kind."""
