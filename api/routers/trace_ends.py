"""The end of a transaction, announced by its sender."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, status

from api.schemas.trace_ends import NewTraceEnd, TraceEndModel
from api.services import Served

router = APIRouter(prefix="/traces", tags=["streams"])

_WITH_NEWEST = NewTraceEnd()


@router.post("/{stream}/{key:path}/end", status_code=status.HTTP_202_ACCEPTED, summary="End a transaction")
def end_trace(
    stream: str,
    key: Annotated[str, Path(min_length=1, description="The correlation key of the transaction.")],
    services: Served,
    end: NewTraceEnd = _WITH_NEWEST,
) -> TraceEndModel:
    """End a transaction: waiting results are emitted, partial matches are dropped.

    A later event of the key begins another transaction. If none is open, nothing happens. Transactions by a further key
    of the stream cannot be ended.
    """
    domain = end.to_domain(key)
    services.announcing.end_trace(stream, domain)
    return TraceEndModel.from_domain(stream, domain)
