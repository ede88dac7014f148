"""The audit log on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.wire import From, PageModel, Time, WireModel


class AuditModel(WireModel):
    """An entry of the audit log: a change that a caller requested."""

    at: Time = Field(description="When it was answered.")
    key: str | None = Field(
        description="Id of the key; 'environment' for FORESTALL_API_KEY, null if no key is required."
    )
    key_name: str | None = Field(description="The name of the key at that time.")
    client: str = Field(description="Address of the caller.")
    method: str
    route: str = Field(description="The operation, with its parameters by name.")
    resource: str = Field(description="The path, cut at 500 characters.")
    http_status: Annotated[int, From("status")] = Field(
        description="HTTP status of the answer: from 400 on, nothing was changed."
    )


class AuditList(PageModel[AuditModel]):
    """The latest changes."""
