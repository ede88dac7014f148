"""Sinks, which are receivers other than webhooks: operations to register, list, change, delete and test them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response, status

from api.access.auth import Calling
from api.locations import creation, give_location
from api.requests.filters import StreamFilter, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute
from api.requests.preconditions import Preconditions, give_tag
from api.routers.webhooks import add_deliveries
from api.schemas.sinks import NewSink, SinkChanges, SinkDetail, SinkList, SinkModel
from api.services import Served
from service import RegisteredWebhook

_EXAMPLE = {"kind": "kafka", "servers": "kafka.example.org:9092", "topic": "alerts"}

router = APIRouter(prefix="/sinks", tags=["sinks"], route_class=IdempotentRoute)


def sink_of(sink_id: str, services: Served) -> RegisteredWebhook:
    """Return the sink in the path."""
    return services.stores.webhooks.of_kind(sink_id, is_sink=True)


PathSink = Annotated[RegisteredWebhook, Depends(sink_of)]


@router.post(
    "",
    **creation("Register a sink"),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": _EXAMPLE}}}},
)
def register_sink(sink: NewSink, services: Served, response: Response) -> SinkModel:
    """Send results to a folder of Parquet files, by e-mail, or to a Kafka topic.

    A sink has the filters, digests, retries and circuit of a webhook. If its messages have bodies, it may have a
    template. Its password is never shown.
    """
    registered = services.webhooks.register(sink.to_domain())
    give_location(response, "sinks", registered.id)
    give_tag(response, registered)
    return SinkModel.from_domain(registered)


@router.get("", summary="List the sinks")
def list_sinks(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> SinkList:
    """List all sinks that the caller may access, the oldest first, with the state of their deliveries.

    Webhooks are not listed.

    With ``stream``, only sinks for this stream are listed.
    """
    sinks = reachable([sink for sink in services.stores.webhooks.all() if sink.sink is not None], caller, stream)
    page = part.of(sinks, "id")
    return SinkList(
        items=[SinkDetail.of(sink, services.webhooks.health(sink.id)) for sink in page["items"]], next=page["next"]
    )


@router.get("/{sink_id}", summary="Look up a sink")
def get_sink(sink: PathSink, services: Served, response: Response) -> SinkDetail:
    """Look up a sink, and the state of its deliveries."""
    give_tag(response, sink)
    return SinkDetail.of(sink, services.webhooks.health(sink.id))


@router.patch("/{sink_id}", summary="Change a sink")
def change_sink(
    stored: PathSink, changes: SinkChanges, services: Served, response: Response, preconditions: Preconditions
) -> SinkDetail:
    """Change target, filters or form of a sink. Omitted members do not change.

    Queued deliveries are sent to the new target. Filters apply to new results.
    """
    sink = services.webhooks.change(stored.id, changes.to_domain(), preconditions)
    give_tag(response, sink)
    return SinkDetail.of(sink, services.webhooks.health(sink.id))


@router.delete("/{sink_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a sink")
def delete_sink(stored: PathSink, services: Served, preconditions: Preconditions) -> None:
    """Delete a sink with its queued deliveries. Results that it has written are kept."""
    services.stores.webhooks.delete(stored.id, preconditions)


_NAMES = ("test_sink", "list_sink_deliveries", "redeliver_to_sink", "redeliver_given_up_to_sink")
add_deliveries(router, "sink", sink_of, *_NAMES)
