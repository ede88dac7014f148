"""A program of a user: the whole client, correctly used; checked by mypy in strict mode, and never run."""

from datetime import UTC, datetime, timedelta
from typing import assert_type

from forestall import (
    ApiError,
    AsyncClient,
    Client,
    LiveEvent,
    ResourceChanged,
    ServiceUnreachable,
    WebhookNotVerified,
    verify_webhook,
    wire,
)


def declare(client: Client) -> str:
    """A stream with a pattern and a webhook."""
    client.streams.create({"name": "orders", "key": "data.id", "lateness": 60})
    new: wire.NewPattern = {"stream": "orders", "text": "PATTERN late\nEVENT Order o, NOT Payment\nWITHIN 1 d"}
    pattern = client.patterns.create(new, if_none_match="*", idempotency_key="late-1")
    assert_type(pattern, wire.CheckedPattern)
    assert_type(pattern["warnings"], list[str])
    hook = client.webhooks.create({"url": "https://example.org/alerts", "stream": "orders"})
    return hook["secret"] or ""


def steer(client: Client) -> None:
    """Everything that reads and changes."""
    found = client.patterns.find("late")
    if found is not None:
        assert_type(found.value, wire.PatternDetail)
        try:
            client.patterns.pause("late", now=True, if_match=found.etag)
        except ResourceChanged as error:
            raise SystemExit(f"{error.code} {error.status} {error.detail} {error.request_id}") from error
    yesterday = datetime.now(tz=UTC) - timedelta(days=1)
    for alert in client.alerts.list(stream="orders", since=yesterday, acknowledged=False, most=10):
        assert_type(alert, wire.ListedAlert)
        client.alerts.add_note(alert["id"], {"text": "seen", "by": "ann"})
    page = client.dead_letters.page(limit=1)
    assert_type(page["next"], str | None)
    assert_type(sum(count["count"] for count in page["counts"]), int)
    assert_type(client.tables.rows("countries"), bytes)
    assert_type(client.workflows.picture("order"), str)
    client.tables.put("countries", b"code,risk\n", key=["code"], media_type="text/csv")
    client.aggregates.ask("sales", {"by": ["region"], "values": ["n"]})
    client.events.send([{"id": "e1", "type": "Order"}], stream="orders")


async def follow(url: str, key: str) -> None:
    """The asynchronous client."""
    async with AsyncClient(url, key, patience_s=10.0) as client:
        assert_type(await client.streams.get("orders"), wire.StreamDetail)
        listed = [alert["id"] async for alert in client.alerts.list()]
        async for event in client.alerts.live(after="0", stream="orders"):
            assert_type(event, LiveEvent[wire.ListedAlert])
            listed.append(f"{event.id} {event.data['why']}")


def receive(body: bytes, headers: dict[str, str], secret: str) -> str:
    """A webhook."""
    try:
        message = verify_webhook(body, headers, secret)
    except WebhookNotVerified:
        return ""
    return f"{message.kind} {message.id}"


def main() -> None:
    """Everything."""
    try:
        with Client("https://forestall.example.org", "a-key") as client:
            declare(client)
            steer(client)
    except ServiceUnreachable as error:
        raise SystemExit(error.message) from error
    except ApiError as error:
        raise SystemExit(str(error.problem.get("errors"))) from error
