"""Announcements by senders: promises about future events, and ends of transactions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, status

from api.schemas.announcements import AnnouncedModel, NewTraceEnd, PunctuationModel, TraceEndModel
from api.services import Served

router = APIRouter(tags=["streams"])

_WITH_NEWEST = NewTraceEnd()


@router.post(
    "/streams/{stream}/punctuations",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Announce events that will not come any more",
)
def punctuate(stream: str, punctuation: PunctuationModel, services: Served) -> AnnouncedModel:
    """Promise that no more events will come: before a time, of some transactions, or of a range of keys.

    The promise applies to events after it in the log. Results that wait for such a promise are emitted: matches that
    wait for a NOT, timeouts, ends of transactions, absences and totals of joins. Events that break the promise are
    treated as late. If a range has finished a key, the member `late` of the join decides about later events of the key.
    """
    warnings = services.announcing.punctuate(stream, punctuation.to_domain())
    return AnnouncedModel(**punctuation.model_dump(by_alias=True), warnings=list(warnings))


@router.post("/traces/{stream}/{key:path}/end", status_code=status.HTTP_202_ACCEPTED, summary="End a transaction")
def end_trace(
    stream: str,
    key: Annotated[str, Path(min_length=1, description="The correlation key of the transaction.")],
    services: Served,
    end: NewTraceEnd = _WITH_NEWEST,
) -> TraceEndModel:
    """End a transaction. Waiting results are emitted, and partial matches are dropped.

    A later event of the key starts another transaction. If no transaction of the key is open, nothing happens.
    Transactions by a further key of the stream cannot be ended.
    """
    domain = end.to_domain(key)
    services.announcing.end_trace(stream, domain)
    return TraceEndModel.of(stream, domain)
