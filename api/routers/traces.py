"""Transactions: lists of open transactions, and the events, pattern states and possible next types of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query

from api.problems import ASKING_RESPONSES
from api.schemas.traces import OpenCaseList, TraceModel
from api.services import Served
from api.work import bounded
from service import CaseFilter

router = APIRouter(prefix="/traces", tags=["traces"])


def described_cases(
    pattern: Annotated[
        str | None, Query(description="Only transactions in which this pattern has a partial match.")
    ] = None,
    state: Annotated[
        Literal["open", "matching", "deviating"],
        Query(
            description="'open': all; 'matching': some pattern has a partial match; 'deviating': the transaction broke "
            "a constraint."
        ),
    ] = "open",
    last_type: Annotated[
        str | None, Query(min_length=1, description="Only transactions whose newest event has this type.")
    ] = None,
    waits_for: Annotated[
        str | None,
        Query(
            min_length=1,
            description="Only transactions in which the furthest partial match of a pattern waits for this type.",
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Return the members of the filter of open transactions that concern progress, state and types."""
    return {"pattern": pattern, "state": state, "last_type": last_type, "waits_for": waits_for}


def wanted_cases(
    stream: Annotated[str, Query(description="The stream.")],
    described: Annotated[Mapping[str, Any], Depends(described_cases)],
    older_than: Annotated[
        str | None,
        Query(
            description="Only transactions whose first event is older than this, in event time: seconds, or a "
            "duration such as `2d`, `90 min`."
        ),
    ] = None,
    key: Annotated[str | None, Query(min_length=1, description="Only the transaction of this correlation key.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> CaseFilter:
    """Return the requested filter of a list of open transactions."""
    return CaseFilter(stream=stream, older_than=older_than, key=key, limit=limit, **described)


def checked_question(services: Served, wanted: Annotated[CaseFilter, Depends(wanted_cases)]) -> Mapping[str, Any]:
    """Convert the filter to a question to the shards.

    Raises:
        ServiceError: The filter names an unknown stream or pattern, or is invalid.
    """
    return services.open_cases.checked(wanted)


@router.get("", summary="List open transactions", responses=ASKING_RESPONSES)
async def list_traces(
    services: Served,
    wanted: Annotated[CaseFilter, Depends(wanted_cases)],
    question: Annotated[Mapping[str, Any], Depends(checked_question)],
) -> OpenCaseList:
    """List open transactions, the oldest first, with the progress of each pattern and the types that may come next.

    Each shard answers from its state, which includes all events that were acknowledged before the question. The answer
    is exact as of the log positions in `positions`. It takes longer while there is a backlog. If not all shards answer
    in time, the answer is 504. If the pipeline does not run, it is 503. The question changes nothing.

    Paused patterns, and patterns that are matched by a further key of the stream, are not listed.
    """
    return OpenCaseList.from_domain(await services.open_cases.list(wanted, question))


@router.get("/{stream}/{key:path}", summary="Look up a transaction")
@bounded
def get_trace(
    stream: str,
    key: Annotated[
        str,
        Path(
            min_length=1, description="Correlation key of the transaction, or with `by` the value of the further key."
        ),
    ],
    services: Served,
    by: Annotated[
        str | None,
        Query(
            min_length=1,
            description="Name of a further key of the stream: shows the transaction of one of its values, with the "
            "patterns that are matched by this key.",
        ),
    ] = None,
    replay: Annotated[
        bool,
        Query(
            description="`false`: the events only, of a transaction of any length; 'patterns' and 'following' are "
            "empty, there is no 'deviation', and 'is_open' does not consider the idle timeout after the newest event."
        ),
    ] = True,
) -> TraceModel:
    """Look up the last transaction of a key: its events, the state of each pattern, possible next types.

    Only events that are still in the log are included.

    The events are matched again with the stream's patterns, each from its registration on, under the constraints that
    were current when the transaction began. `positions` are the positions of the log up to which events are read. The
    pipeline may not have reached them yet. If `is_complete` is false, older parts of the log were trimmed or not read,
    so the beginning may be missing. The events of a derived stream are read from the list of derived events.
    """
    return TraceModel(**services.traces.look(stream, key, by or "", is_replayed=replay))
