"""Punctuations: promises of a sender about events that will not come any more."""

from __future__ import annotations

from fastapi import APIRouter, status

from api.schemas.punctuations import AnnouncedModel, PunctuationModel
from api.services import Served

router = APIRouter(prefix="/streams", tags=["streams"])


@router.post(
    "/{stream}/punctuations",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Announce events that will not come any more",
)
def punctuate(stream: str, punctuation: PunctuationModel, services: Served) -> AnnouncedModel:
    """Promise that no more events will come: before a time, of some transactions, or of a range of keys.

    The promise is about later events. Results that wait for it are emitted: matches that wait for a NOT, timeouts, the
    end of the transaction, absences and totals of joins. Events that break the promise are treated as late; for a key
    that a range has finished, the `late` of the join decides.
    """
    warnings = services.announcing.punctuate(stream, punctuation.to_domain())
    return AnnouncedModel(**punctuation.model_dump(by_alias=True), warnings=list(warnings))
