"""Backtests: start, list, look up, list alerts, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from api.access.auth import Calling
from api.locations import creation, give_location
from api.requests.filters import StreamFilter, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute
from api.schemas.backtests import BacktestAlertList, BacktestDetail, BacktestList, BacktestModel, NewBacktest
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/backtests", tags=["backtests"], route_class=IdempotentRoute)


@router.post("", **creation("Start a backtest", status_code=status.HTTP_202_ACCEPTED))
@bounded
def ask_for_backtest(backtest: NewBacktest, services: Served, response: Response) -> BacktestModel:
    """Match a pattern over past events, and compare its results with those of another version.

    Backtests run one after the other, with the stream's current constraints. If the source is the log, the backtest
    reads the entries that are retained when it starts. If the source is a folder, it reads all files below the folder:
    JSON lines, CSV, XES and Parquet.
    """
    record = services.backtests.ask(backtest.to_domain())
    give_location(response, "backtests", record.id)
    return BacktestModel.from_domain(record)


@router.get("", summary="List the backtests")
def list_backtests(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> BacktestList:
    """List the backtests that the caller may access, newest first."""
    backtests = reachable(services.stores.backtests.all(), caller, stream)
    return BacktestList(**part.of(backtests, "id"))


@router.get("/{backtest_id}", summary="Look up a backtest")
def get_backtest(backtest_id: str, services: Served) -> BacktestDetail:
    """Look up the state of a backtest, and its result once it is done."""
    return BacktestDetail.of(*services.backtests.get(backtest_id))


@router.get("/{backtest_id}/alerts", summary="List the alerts of a backtest")
def list_backtest_alerts(
    backtest_id: str,
    services: Served,
    after: Annotated[str, Query(description="'next' of an earlier page.")] = "0",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> BacktestAlertList:
    """List the alerts by their end, including alerts that only a compared variant has.

    Before the backtest is done, the list is empty.
    """
    return BacktestAlertList.from_domain(services.backtests.alerts(backtest_id, after=after, limit=limit))


@router.delete("/{backtest_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Cancel or remove a backtest")
def delete_backtest(backtest_id: str, services: Served) -> None:
    """Cancel a waiting or running backtest, or remove a finished one with its alerts."""
    services.backtests.delete(backtest_id)
