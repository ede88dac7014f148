"""Dead letters: list, count, look up, send again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.problems import OVERLOAD_RESPONSES
from api.requests.filters import StreamFilter, WantedPage, of_stream
from api.schemas.dead_letters import DeadLetterDetail, DeadLetterList, ReplayedList, ReplayModel
from api.services import Served

router = APIRouter(prefix="/dead-letters", tags=["dead-letters"])

CodeFilter = Annotated[str | None, Query(description="Only dead letters with this code.")]


@router.get("", summary="List recent dead letters")
def list_dead_letters(
    services: Served,
    stream: StreamFilter,
    code: CodeFilter = None,
    *,
    wanted: WantedPage,
) -> DeadLetterList:
    """List events and log entries that could not be processed, with counters by reason."""
    store = services.stores.dead_letters
    page = store.page(**wanted, stream=stream, code=code)
    outcomes = store.outcomes([letter["id"] for letter in page.items])
    return DeadLetterList.of(page, store.counts(**of_stream(stream)), outcomes)


@router.post("/replay", summary="Send dead letters again", responses=OVERLOAD_RESPONSES)
def replay_dead_letters(
    services: Served,
    stream: StreamFilter,
    code: CodeFilter = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ReplayedList:
    """Send dead letters of a stream and code again, for example after the cause was fixed.

    Only events that were refused at intake and are stored completely are sent again. Letters that were never sent again
    are first, the oldest first. The other letters follow, in the order of their last refusal. Repeat the request until
    `left` is 0 or a letter is sent a second time.
    """
    return ReplayedList.from_domain(services.dead_letters.replay_all(stream=stream, code=code, limit=limit))


@router.get("/{letter_id}", summary="Look up a dead letter")
def get_dead_letter(letter_id: str, services: Served) -> DeadLetterDetail:
    """Look up a dead letter with its event, and the result of sending it again."""
    return DeadLetterDetail.with_outcome(*services.dead_letters.get(letter_id))


@router.post("/{letter_id}/replay", summary="Send a dead letter again", responses=OVERLOAD_RESPONSES)
def replay_dead_letter(letter_id: str, services: Served) -> ReplayModel:
    """Send the event of a dead letter again, for example after the cause was fixed. The event is accepted only once.

    If the event is refused again, there is no further dead letter, and the event may be sent again later.
    """
    return ReplayModel.copying(services.dead_letters.replay(letter_id), id=letter_id)
