"""The audit log on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from api.wire import PageModel, Time, WireModel
from service import Page
from streams import format_time


class AuditModel(WireModel):
    """A requested change."""

    at: Time = Field(description="When it was answered.")
    key: str | None = Field(
        description="Id of the key; 'environment' for FORESTALL_API_KEY, null if no key is required."
    )
    key_name: str | None = Field(description="The name of the key at that time.")
    client: str = Field(description="Address of the caller.")
    method: str
    route: str = Field(description="The operation, with its parameters by name.")
    resource: str = Field(description="The path, cut at 500 characters.")
    http_status: int = Field(description="HTTP status of the answer: from 400 on, nothing was changed.")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The wire form of an entry."""
        members = {name: value for name, value in record.items() if name not in ("at_us", "status")}
        return cls(at=format_time(record["at_us"]), http_status=record["status"], **members)


class AuditList(PageModel):
    """The latest changes."""

    items: list[AuditModel]

    @classmethod
    def from_domain(cls, page: Page) -> Self:
        """The wire form of a page."""
        return cls(items=[AuditModel.from_record(record) for record in page.items], next=page.next, after=page.after)
