"""Sends events from this process to streams of a running service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from service.client import ApiError, Client
from streams import Event, KeyForm, keyed_cloudevent

REPLAY_SOURCE = "forestall/replay"
_NOTHING_ACCEPTED = "nothing-accepted"


def send_events(
    client: Client,
    stream: str,
    events: Sequence[Event],
    idempotency_key: str,
    sources: Sequence[str] = (),
    key: KeyForm = "subject",
) -> dict[str, Any]:
    """Append events to a stream exactly once, even if the call is repeated. The answer lists the rejected events.

    ``idempotency_key`` identifies the call and its events. An event is identified by its source and its id. Without
    ``sources``, all events have the same source. ``key`` is the path of the stream's correlation key in an event.
    """
    places = sources or [REPLAY_SOURCE] * len(events)
    body = [keyed_cloudevent(event, source, key) for event, source in zip(events, places, strict=True)]
    try:
        answer = client.events.send(
            body, stream=stream, idempotency_key=idempotency_key, media_type="application/cloudevents-batch+json"
        )
    except ApiError as error:
        if error.code != _NOTHING_ACCEPTED:
            raise
        return dict(error.problem)
    return cast("dict[str, Any]", answer)
