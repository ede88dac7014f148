"""Constraint sets on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field

from api.wire import WireModel
from constraints import parse_constraints
from service import ConstraintReport, RegisteredConstraints, set_document
from streams import format_time

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
    """How a constraint set is used."""

    prune: Literal["state", "query", "shadow", "off"] = Field(
        description="What becomes of partial matches that can no longer complete: each goes at once; those of an "
        "alternative together; none goes, and what would have is told; none goes."
    )
    on_violation: Literal["report", "fail_trace", "ignore"] = Field(
        description="What becomes of a transaction that breaks a constraint: it is told, and no longer pruned; it is "
        "told, and nothing more is looked for in it; it is counted, and pruning goes on, so matches may be lost."
    )
    unknown_types: Literal["ignore", "deviate"] = Field(description="Whether types beyond 'types' break a constraint.")
    completion: Literal["assumed", "not_assumed"] = Field(
        description="Whether a transaction is taken to go on until it has all that it requires."
    )
    types: list[str] = Field(description="Event types of the process besides those that constraints name.")
    frequencies: dict[str, float] = Field(description="By name, the part of the transactions that show it.")
    max_monitor_states: int


class ProcessModel(WireModel):
    """What a workflow says of a constraint set."""

    name: str = Field(description="The workflow that the stream follows.")
    version: int
    used: Literal["exact", "tables"] = Field(
        description="exact: the workflow's automaton is followed; tables: its constraints only."
    )
    states: int | None = Field(description="States of the automaton.")
    derived: list[str] = Field(description="Those of 'constraints' that come from the workflow only, in words.")
    derived_end: list[str] = Field(description="Those of 'end' that come from the workflow only.")


class ConstraintsModel(WireModel):
    """The constraint set of a stream."""

    stream: str
    version: int = Field(description="Counts from 1 within the stream.")
    constraints: list[str] = Field(description="Orders and occurrences, in words.")
    rules: list[str] = Field(description="Rules that are neither, in words.")
    symbols: list[str] = Field(description="Types with a condition that constraints name.")
    workflow: ProcessModel | None = Field(None, description="The workflow that some of it comes from.")
    settings: SettingsModel
    end: list[str] = Field(description="Types after which nothing follows, the stream's end events included.")
    warnings: list[str] = Field(description="What can never happen, and patterns that can no longer match.")
    notices: list[str] = Field(description="Where the upload means more than is kept.")
    uploaded_at: str

    @classmethod
    def from_domain(cls, report: ConstraintReport) -> Self:
        """The wire form of a constraint set."""
        return cls(
            stream=report.record.stream,
            version=report.record.version,
            **set_document(report.constraint_set),
            warnings=list(report.warnings),
            notices=list(report.record.notices),
            uploaded_at=format_time(report.record.uploaded_us),
        )


class ConstraintsSummary(WireModel):
    """A version of a stream's constraint set."""

    stream: str
    version: int
    uploaded_at: str

    @classmethod
    def from_domain(cls, record: RegisteredConstraints) -> Self:
        """The short form of a constraint set."""
        return cls(stream=record.stream, version=record.version, uploaded_at=format_time(record.uploaded_us))


class ConstraintsList(WireModel):
    """The constraint sets of all streams that have one, by name."""

    items: list[ConstraintsSummary]


class ConstraintsVersion(ConstraintsSummary):
    """A version of a stream's constraint set, and what it says."""

    constraints: list[str] = Field(description="Orders and occurrences, in words.")
    rules: list[str] = Field(description="Rules that are neither, in words.")
    symbols: list[str] = Field(description="Types with a condition that constraints name.")
    end: list[str]
    workflow: ProcessModel | None = Field(None, description="The workflow that some of it comes from.")
    settings: SettingsModel

    @classmethod
    def from_record(cls, record: RegisteredConstraints) -> Self:
        """The wire form of a version."""
        said = set_document(parse_constraints(record.document).constraint_set)
        return cls(**ConstraintsSummary.from_domain(record).model_dump(), **said)


class ConstraintsVersions(WireModel):
    """Every constraint set that a stream has had, the newest first. Open transactions may follow older ones."""

    items: list[ConstraintsVersion]

    @classmethod
    def from_records(cls, records: Sequence[RegisteredConstraints]) -> Self:
        """The wire form of the versions, given the oldest first."""
        return cls(items=[ConstraintsVersion.from_record(record) for record in reversed(records)])
