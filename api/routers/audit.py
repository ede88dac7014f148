"""The audit log of requested changes."""

from __future__ import annotations

from fastapi import APIRouter

from api.requests.filters import WantedPage
from api.schemas.audit import AuditList
from api.services import Served

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", summary="List recent changes")
def list_changes(services: Served, page: WantedPage) -> AuditList:
    """List requested changes: the caller, the time, the resource and the status of the answer.

    The log has every request that is not a GET and requires the scope ``patterns`` or ``admin``, including refused
    requests. It does not have events, punctuations and ends of transactions.
    """
    return AuditList.from_domain(services.stores.audit.page(**page))
