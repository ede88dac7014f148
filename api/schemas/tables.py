"""Reference tables on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field

from api.wire import From, PartModel, Time, WireModel
from service import RegisteredTable, TableReport

ColumnType: TypeAlias = Literal["text", "integer", "number", "boolean", "time"]
ROW_EXAMPLE: dict[str, Any] = {"limit": 2500, "tier": "gold"}
CSV_EXAMPLE = "customer_id,limit,tier\nc1,1000,silver\nc2,2500,gold\n"


class TableSummary(WireModel):
    """A version of a table."""

    version: int = Field(description="Counts from 1 for each name and never repeats.")
    rows: int = Field(description="Number of uploaded rows.")
    size_bytes: int = Field(description="Bytes of the rows in memory.")
    rows_digest: Annotated[str, From("digest")]
    created_at: Time


class TableUser(WireModel):
    """An operator that looks a table up."""

    kind: str
    name: str


class TableModel(TableSummary):
    """A reference table, and the operators that look it up."""

    name: str
    key: list[str] = Field(description="The columns of the key.")
    columns: dict[str, ColumnType] = Field(description="All columns in their order, with their types.")
    changed_rows: Annotated[int, From("changes")] = Field(
        description="Number of rows that were changed one at a time since this version."
    )
    users: list[TableUser] = Field(description="The operators that look it up; they keep it from being deleted.")

    @classmethod
    def from_domain(cls, report: TableReport) -> Self:
        return cls.copying(report.record, users=report.users)


class TableDetail(TableModel):
    """A reference table with its versions."""

    versions: list[TableSummary] = Field(description="The newest first.")

    @classmethod
    def from_versions(cls, report: TableReport, versions: Sequence[RegisteredTable]) -> Self:
        """Convert a table. ``versions`` are its versions, and the current version is the last one."""
        return cls.copying(report.record, users=report.users, versions=versions[::-1])


class TableList(PartModel[TableModel]):
    """All reference tables, by name."""
