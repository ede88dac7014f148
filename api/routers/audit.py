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
    """Requested changes, newest first: the caller, the time, the resource and the answer.

    The log has every request with the scope ``patterns`` or ``admin`` that is not a GET, including refused ones. It
    does not have events, punctuations and ends of transactions.
    """
    return AuditList.from_domain(services.stores.audit.page(limit, after=after))
