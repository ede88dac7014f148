"""Constraint sets on the wire."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from api.wire import PartModel, Time, WireModel
from constraints import parse_constraints
from service import ConstraintReport, RegisteredConstraints, set_document

EXAMPLE: dict[str, Any] = {
    "stream": "orders",
    "constraints": ["exclusive(UseLocalStock, UseRemoteStock)", {"prior": ["GenerateQuote", "GenerateInvoice"]}],
    "end": ["CloseOrder", "CancelOrder"],
}
YAML_EXAMPLE = """\
stream: orders
constraints:
  - exclusive(UseLocalStock, UseRemoteStock)
  - prior: [GenerateQuote, GenerateInvoice]
end: [CloseOrder, CancelOrder]
"""


class SettingsModel(WireModel):
    """The settings of a constraint set."""

    prune: Literal["state", "query", "shadow", "off"] = Field(
        description="What to do with partial matches that can no longer complete: drop each at once; drop those of an "
        "alternative together; keep all and report what would have been dropped; keep all."
    )
    on_violation: Literal["report", "fail_trace", "ignore"] = Field(
        description="What to do with a transaction that breaks a constraint: report it and stop pruning it; "
        "report it and stop matching in it; count it and continue pruning, so that matches may be lost."
    )
    unknown_types: Literal["ignore", "deviate"] = Field(description="Whether types beyond 'types' break a constraint.")
    completion: Literal["assumed", "not_assumed"] = Field(
        description="Whether transactions are assumed to continue until they contain everything required."
    )
    types: list[str] = Field(description="Event types of the process besides those that constraints name.")
    frequencies: dict[str, float] = Field(description="By name, the share of the transactions that contain it.")
    max_monitor_states: int


class ProcessModel(WireModel):
    """The workflow behind a constraint set."""

    name: str = Field(description="The workflow that the stream follows.")
    version: int
    used: Literal["exact", "tables"] = Field(
        description="exact: the workflow's automaton is followed; tables: its constraints only."
    )
    state_count: int | None = Field(description="States of the automaton.")
    derived_constraints: list[str] = Field(
        description="The part of 'constraints' that comes from the workflow only, in words."
    )
    derived_end_events: list[str] = Field(description="The part of 'end_events' that comes from the workflow only.")


class ConstraintsModel(WireModel):
    """The constraint set of a stream."""

    stream: str
    version: int = Field(description="Counts from 1 within the stream.")
    constraints: list[str] = Field(description="Orders and occurrences, in words.")
    rules: list[str] = Field(description="Other rules, in words.")
    symbols: list[str] = Field(description="Types with a condition that constraints name.")
    followed_workflow: ProcessModel | None = Field(
        None, description="The workflow from which a part of the set is derived."
    )
    settings: SettingsModel
    end_events: list[str] = Field(description="Types after which nothing follows, the stream's end events included.")
    warnings: list[str] = Field(description="Types that can never occur, and patterns that can no longer match.")
    notices: list[str] = Field(description="Notices about parts of the upload that mean more than the stored set.")
    created_at: Time
    source: dict[str, Any] = Field(
        description="The hand-written constraints, in canonical form: uploading them again changes nothing."
    )

    @classmethod
    def from_domain(cls, report: ConstraintReport) -> Self:
        """The wire form of a constraint set."""
        return cls.copying(
            report.record,
            **set_document(report.constraint_set),
            warnings=list(report.warnings),
            notices=list(report.record.notices),
            source=dict(report.record.written),
        )


class ConstraintsSummary(WireModel):
    """A version of a stream's constraint set."""

    stream: str
    version: int
    created_at: Time


class ConstraintsList(PartModel):
    """The constraint sets of all streams that have one, by name."""

    items: list[ConstraintsSummary]


class ConstraintsVersion(ConstraintsSummary):
    """A version of a stream's constraint set, with its content."""

    constraints: list[str] = Field(description="Orders and occurrences, in words.")
    rules: list[str] = Field(description="Other rules, in words.")
    symbols: list[str] = Field(description="Types with a condition that constraints name.")
    end_events: list[str]
    followed_workflow: ProcessModel | None = Field(
        None, description="The workflow from which a part of the set is derived."
    )
    settings: SettingsModel

    @classmethod
    def from_record(cls, record: RegisteredConstraints) -> Self:
        """The wire form of a version."""
        members = set_document(parse_constraints(record.document).constraint_set)
        return cls.copying(record, **members)


class ConstraintsVersions(PartModel):
    """Every constraint set that a stream has had, the newest first. Open transactions may follow older ones."""

    items: list[ConstraintsSummary]
