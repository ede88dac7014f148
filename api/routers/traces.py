"""Transactions: the events of one, the state of each pattern, which types may come next."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from api.schemas.traces import TraceModel
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/traces", tags=["traces"])


@router.get("/{stream}/{key:path}", summary="Look up a transaction")
@bounded
def get_trace(
    stream: str, key: Annotated[str, Path(min_length=1, description="Its correlation key.")], services: Served
) -> TraceModel:
    """The last transaction of a key, as far as the log holds it: its events, the state of each pattern, possible types.

    The events are matched again with the stream's patterns, each from the place on at which it came, under the
    constraints that were there when the transaction began. `positions` says up to where in the log that holds; the
    pipeline may not be as far. Where `complete` is false, older parts of the log are gone or were not read, so that the
    beginning may be missing.
    """
    return TraceModel.from_domain(services.traces.look(stream, key))
