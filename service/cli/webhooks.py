"""``forestall webhooks``: where the running service sends what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, given, part, printable
from service.cli.inputs import read_json, read_text, told
from service.cli.patterns import Severity
from service.cli.resources import AtMost, Resource, Table, add_delete, add_list_of_stream, add_show

webhooks = typer.Typer(help="Webhooks of the running service.", no_args_is_help=True)


class Kind(StrEnum):
    """What is sent."""

    ALERT = "alert"
    CORRECTION = "correction"
    DEVIATION = "deviation"
    SUSPENSION = "pattern.suspended"


WebhookId = Annotated[str, typer.Argument(help="Id of the webhook, as 'forestall webhooks list' shows it.")]

_WEBHOOKS = Resource(
    path="/webhooks",
    one="webhook",
    listed="the webhooks, the oldest first",
    table=Table(("id", "url", "stream", "pattern", "kinds", "enabled", "description")),
)
_ATTEMPTS = Table(("at", "delivery", "kind", "item", "attempt", "verdict", "status", "error"))

add_list_of_stream(webhooks, _WEBHOOKS)
add_show(webhooks, _WEBHOOKS, "a webhook, and how its deliveries fare")


@webhooks.command("add")
def add_webhook(
    target: Annotated[str, typer.Argument(help="Address that is sent to, http or https.")],
    stream: Annotated[str | None, typer.Option(help="Only what is of this stream.")] = None,
    pattern: Annotated[str | None, typer.Option(help="Only what is of this pattern.")] = None,
    min_severity: Annotated[Severity | None, typer.Option(help="Only what is at least as grave.")] = None,
    kind: Annotated[list[Kind] | None, typer.Option(help="What is sent; repeatable; alert, correction else.")] = None,
    description: Annotated[str | None, typer.Option(help="For people.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="'NAME: VALUE' that is sent along; repeatable.")] = None,
    template: Annotated[Path | None, typer.Option(help="JSON file: the form of the bodies.")] = None,
    secret_file: Annotated[Path | None, typer.Option(help="File with the secret; one is made else.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Send what is found from now on to an address. Standard output is the secret, which nobody can look up later."""
    body = given(
        url=target,
        stream=stream,
        pattern=pattern,
        min_severity=min_severity,
        kinds=kind or None,
        description=description,
        headers=_headers(header) or None,
        template=None if template is None else read_json(template),
        secret=None if secret_file is None else read_text(secret_file).strip(),
    )
    with calling(url, api_key) as client:
        _tell_secret(client.post("/webhooks", body), is_json=is_json)


@webhooks.command()
def rotate(
    webhook: WebhookId,
    grace: Annotated[int | None, typer.Option(min=0, help="Seconds for which the former secret signs as well.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Sign with another secret. Standard output is the secret, which nobody can look up later."""
    with calling(url, api_key) as client:
        _tell_secret(client.post(f"/webhooks/{part(webhook)}/rotate-secret", given(grace_s=grace)), is_json=is_json)


@webhooks.command("test")
def send_test(webhook: WebhookId, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """Send one signed test message at once. Exit status 1: the receiver did not take it."""
    with calling(url, api_key) as client:
        found = client.post(f"/webhooks/{part(webhook)}/test", None)
    if is_json:
        typer.echo(orjson.dumps(found).decode())
    elif found["delivered"]:
        typer.echo(f"delivered: the receiver answered {found['status']} after {found['duration_ms']} ms")
    else:
        typer.echo(printable(f"not delivered: {found['error']}"))
    raise typer.Exit(0 if found["delivered"] else 1)


@webhooks.command()
def deliveries(
    webhook: WebhookId,
    limit: AtMost = 20,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """List the latest attempts to deliver, the newest first."""
    with calling(url, api_key) as client:
        _ATTEMPTS.show_pages(client, f"/webhooks/{part(webhook)}/deliveries", limit, is_json=is_json)


@webhooks.command()
def redeliver(
    webhook: WebhookId,
    delivery: Annotated[str | None, typer.Argument(help="Id of a delivery; or say --since.")] = None,
    since: Annotated[str | None, typer.Option(help="Time, RFC 3339: all that was given up from then on.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Queue a delivery again, whatever became of it, or all that was given up since a time."""
    if (delivery is None) == (since is None):
        raise typer.BadParameter("say the delivery, or --since a time")
    path = f"/webhooks/{part(webhook)}"
    with calling(url, api_key) as client:
        if delivery is not None:
            queued = client.post(f"{path}/deliveries/{part(delivery)}/redeliver", None)["queued"]
        else:
            queued = 0
            while True:
                answer = client.post(f"{path}/redeliver", {"since": since})
                queued += answer["queued"]
                if not answer["remaining"] or not answer["queued"]:
                    break
    if is_json:
        typer.echo(orjson.dumps({"queued": queued}).decode())
    else:
        typer.echo(f"{queued} queued")


@webhooks.command()
def enable(webhook: WebhookId, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Send again, what is queued first; failures are forgotten."""
    _switch(webhook, url, api_key, enabled=True)


@webhooks.command()
def disable(webhook: WebhookId, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Send nothing for now; what is queued waits."""
    _switch(webhook, url, api_key, enabled=False)


add_delete(webhooks, _WEBHOOKS, "Send nothing more there, what is queued included.")


def _switch(webhook: str, url: str | None, api_key: str | None, *, enabled: bool) -> None:
    with calling(url, api_key) as client:
        client.patch(f"/webhooks/{part(webhook)}", {"enabled": enabled})
    told.print(f"the webhook {escape(webhook)} is {'enabled' if enabled else 'disabled'}")


def _tell_secret(found: Mapping[str, Any], *, is_json: bool) -> None:
    if is_json:
        typer.echo(orjson.dumps(found).decode())
        return
    if found["secret"] is None:
        told.print(
            f"webhook {found['id']} is there, and the answer with its secret was lost: 'forestall webhooks rotate "
            f"{found['id']}' gives it another one"
        )
        return
    told.print(f"webhook {found['id']} to {escape(printable(found['url']))}; its secret is shown this once:")
    typer.echo(found["secret"])


def _headers(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts or []]
    for name, sign, _ in pairs:
        if not (name and sign):
            raise typer.BadParameter(f"{name!r} is not 'NAME: VALUE', such as 'authorization: Bearer abc'")
    return {name.strip(): value.strip() for name, _, value in pairs}
