"""Lists of recent results with counters, one endpoint per kind of result."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Query

from api.requests.filters import PatternFilter, StreamFilter, WantedPage, of_stream
from api.schemas.alerts import SuppressedAlertList
from api.schemas.results import (
    CorrectionList,
    DerivedEventList,
    DeviationList,
    EndingList,
    EndingSummaries,
    HourCountModel,
    HourCounts,
    ResultList,
    SuspensionList,
    TimeoutList,
)
from api.services import Served
from api.wire import Moment, moment
from shards import RESULT_KINDS
from streams import parse_time

router = APIRouter()

_Model: TypeAlias = type[ResultList[Any, Any]]


def _add_list(kind: str, model: _Model, called: str, description: str) -> None:
    plural = RESULT_KINDS[kind].plural

    def list_results(
        services: Served,
        stream: StreamFilter,
        page: WantedPage,
    ) -> ResultList[Any, Any]:
        store = services.stores.results[kind]
        return model.from_domain(store.page(**page, stream=stream), counts=store.counts(**of_stream(stream)))

    router.add_api_route(
        f"/{plural}",
        list_results,
        name=f"list_{RESULT_KINDS[kind].member}",
        response_model=model,
        tags=[plural],
        summary=f"List recent {called}",
        description=description,
    )


_add_list(
    "suppressed-alert",
    SuppressedAlertList,
    "suppressed alerts",
    "Alerts that an earlier alert of their group suppresses, and counters by pattern.",
)
_add_list(
    "correction",
    CorrectionList,
    "corrections",
    "Retractions of alerts that were sent early and do not hold, and counters by pattern.",
)
_add_list(
    "suspension",
    SuspensionList,
    "suspensions",
    "Patterns that were suspended as they cost too much work, and counters by pattern.",
)
_add_list(
    "derived",
    DerivedEventList,
    "derived events",
    "Events that patterns with INTO made of their matches, and counters by pattern and stream.\n\n"
    "With ``stream``: only those whose match is in this stream.",
)
_add_list(
    "timeout",
    TimeoutList,
    "timeouts",
    "Partial matches whose WITHIN has passed, of patterns with EMIT TIMEOUTS, and counters.",
)
_add_list(
    "ending",
    EndingList,
    "early terminations",
    "The first event after which a pattern can no longer match in a transaction, and counters by reason."
    "\n\nA transaction's own end event is among them, with the form ``end``.",
)
_add_list(
    "deviation",
    DeviationList,
    "deviations",
    "Events that break their stream's constraints, and counters by event type and kind.",
)


@router.get("/results/hours", tags=["results"], summary="Count results by hour")
def count_by_hour(
    services: Served,
    stream: StreamFilter,
    pattern: PatternFilter,
    kind: Annotated[
        Literal["alert", "ending", "deviation"],
        Query(description="Kind of results; `ending` counts the listed early terminations."),
    ] = "alert",
    since: Annotated[
        Moment | None, Query(description="Start of the period (default: 48 hours before the newest counted hour).")
    ] = None,
    until: Annotated[Moment | None, Query(description="End of the period (default: now).")] = None,
) -> HourCounts:
    """Count the results of each pattern by hour of event time, including results that are no longer listed.

    Counts are kept for the newest 744 hours (31 days) with results up to now, and for 744 hours after now. An answer
    has at most 20,000 counts, those of the newest hours.
    """
    begin_us = None if since is None else parse_time(since)
    end_us = services.clock.now_us() if until is None else parse_time(until)
    filters = {"stream": stream, "subject": pattern}
    counts, since_us = services.stores.hours.read(RESULT_KINDS[kind], filters, begin_us, end_us)
    return HourCounts(since=moment(since_us), items=[HourCountModel.from_domain(count) for count in counts])


@router.get("/endings/summary", tags=["endings"], summary="Count early terminations by pattern and reason")
def summarize_endings(services: Served, stream: StreamFilter) -> EndingSummaries:
    """Count the transactions in which each pattern was terminated early, by reason, since the service began."""
    return EndingSummaries.from_domain(services.stores.results["ending"].counts(**of_stream(stream)))
