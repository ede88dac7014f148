"""Conformance of transactions with a workflow, on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from api.errors import WrongShape
from api.wire import WireModel
from service import BatchTooLarge, RegisteredWorkflow
from workflows import Conformance


class TracedEvent(BaseModel):
    """An event of which only the type is used."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str


Trace: TypeAlias = list[str | TracedEvent]


class ConformanceRequest(WireModel):
    """A transaction, or several: event types, or events."""

    trace: Trace | None = None
    traces: list[Trace] = Field([], description="Several transactions, answered in their order.")

    def to_domain(self, limit: int) -> list[list[str]]:
        """The event types of each transaction.

        Args:
            limit: The most events of all transactions together.

        Raises:
            WrongShape: The request has neither ``trace`` nor ``traces``.
            BatchTooLarge: The transactions have more events.
        """
        if not self.model_fields_set:
            raise WrongShape("body: give 'trace' or 'traces'")
        asked = ([] if self.trace is None else [self.trace]) + self.traces
        events = sum(map(len, asked))
        if events > limit:
            raise BatchTooLarge(f"the request has {events} events; at most {limit} are accepted", limit=limit)
        return [[event if isinstance(event, str) else event.type for event in trace] for trace in asked]


class ConformanceModel(WireModel):
    """Conformance of a transaction with the workflow."""

    conforms: bool = Field(description="Whether no event leaves the workflow.")
    is_complete: bool = Field(description="Whether it is a complete trace.")
    index: int | None = Field(description="Place of the first event that leaves the workflow, from 0.")
    event: str | None = Field(description="Type of that event.")
    kind: str | None = Field(
        description="Kind of the deviation: workflow, unknown_type, or after_end if the transaction was over."
    )
    allowed: list[str] = Field(description="Types that are allowed there instead.")
    still_allowed: list[str] = Field(description="Types that are allowed after the last event, if none leaves.")
    broken_constraints: list[str] = Field(description="Constraints that the event breaks, if there is no automaton.")
    unmet: list[str] = Field(
        description="Constraints that a complete trace would still have to meet, if there is no automaton."
    )
    unknown: list[str] = Field(description="Types that the workflow never emits.")
    is_exact: bool = Field(
        description="True: decided by an automaton; false: by constraints, which may be too lenient."
    )


class ConformanceList(WireModel):
    """The conformance of each transaction, in their order."""

    workflow: str
    version: int
    items: list[ConformanceModel]

    @classmethod
    def of(cls, record: RegisteredWorkflow, found: Sequence[Conformance]) -> Self:
        """The wire form of the answers."""
        items = [ConformanceModel.model_validate(one.to_document()) for one in found]
        return cls(workflow=record.name, version=record.version, items=items)
