"""The audit log: the latest changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.requests.filters import OlderThan
from api.schemas.audit import AuditList
from api.services import Served

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", summary="List recent changes")
def list_changes(
    services: Served, after: OlderThan = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> AuditList:
    """Who requested a change, when, of what, and the answer; newest first.

    Every request with the scope ``patterns`` or ``admin`` that is not a GET is here, including refused ones. Events,
    punctuations and ends of transactions are not.
    """
    return AuditList.from_domain(services.stores.audit.page(limit, after=after))
