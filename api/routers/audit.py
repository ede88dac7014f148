"""The audit log: the latest changes."""

from __future__ import annotations

from fastapi import APIRouter

from api.requests.filters import WantedPage
from api.schemas.audit import AuditList
from api.services import Served

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", summary="List recent changes")
def list_changes(services: Served, page: WantedPage) -> AuditList:
    """Requested changes: the caller, the time, the resource and the answer.

    The log has every request with the scope ``patterns`` or ``admin`` that is not a GET, including refused ones. It
    does not have events, punctuations and ends of transactions.
    """
    return AuditList.from_domain(services.stores.audit.page(**page))
