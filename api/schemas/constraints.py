"""Constraint sets on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from api.wire import WireModel
from service import ConstraintReport
from service.stores import RegisteredConstraints
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


class ConstraintsModel(WireModel):
    """The constraint set of a stream."""

    stream: str
    version: int = Field(description="Counts from 1 within the stream.")
    constraints: list[str] = Field(description="In words.")
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
            constraints=[str(constraint) for constraint in report.constraint_set.constraints],
            end=sorted(report.constraint_set.end_events),
            warnings=list(report.warnings),
            notices=list(report.record.notices),
            uploaded_at=format_time(report.record.uploaded_us),
        )


class ConstraintsSummary(WireModel):
    """Which version of its constraint set a stream has."""

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
