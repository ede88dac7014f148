"""``forestall webhooks``: the addresses to which the running service sends its alerts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.choices import NONE, as_seconds
from service.cli.inputs import read_json, read_text
from service.cli.output import printable, standard_error
from service.cli.patterns import Severity
from service.cli.resources import After, AtMost, Resource, Table, add_delete, add_list_of_stream, add_show
from service.cli.signatures import Options, in_place_of
from service.client import Client, part
from shards import RESULT_KINDS, USUAL_KINDS

webhooks = Commands(help="Webhooks of the running service.")


_KINDS = [kind.delivered_as for kind in RESULT_KINDS.values() if kind.delivered_as]
KINDS_HELP = f"Kind of results to send: {', '.join(_KINDS)} (default: {', '.join(USUAL_KINDS)}). Repeatable."

WebhookId = Annotated[str, typer.Argument(help="Id or name of the webhook, as 'forestall webhooks list' shows it.")]


def id_of(client: Client, name: str, path: str = "/webhooks") -> str:
    """Return the id of the webhook, or other receiver, that has this name or id."""
    listed = client.get(path)["items"]
    named = [webhook["id"] for webhook in listed if webhook["name"] == name]
    return name if not named or any(webhook["id"] == name for webhook in listed) else str(named[0])


_WEBHOOKS = Resource(
    path="/webhooks",
    one="webhook",
    listed="the webhooks, the oldest first",
    table=Table(("id", "name", "url", "stream", "pattern", "kinds", "enabled", "description")),
    identified=id_of,
)
_ATTEMPTS = Table(
    ("at", "delivery_id:delivery", "kind", "result_id:result", "attempt", "verdict", "http_status:status", "error")
)


def known_kinds(kinds: list[str] | None) -> list[str] | None:
    """Return the given kinds of results. Refuse a kind that is not delivered."""
    for kind in kinds or ():
        if kind not in _KINDS:
            raise typer.BadParameter(f"{kind!r} is not one of {', '.join(_KINDS)}.")
    return kinds


_LeastSeverity: TypeAlias = Annotated[Severity | None, typer.Option(help="Only results of at least this severity.")]
_Template: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="JSON file with the template of message bodies.")
]
_Description: TypeAlias = Annotated[str | None, typer.Option(help="Description for people.")]
_DIGEST_HELP = "Collect results for this long, and send them as one message: '10 min'."
_Digest: TypeAlias = Annotated[str | None, typer.Option(metavar="DURATION", help=_DIGEST_HELP)]
_AtOnce: TypeAlias = Annotated[
    Severity | None, typer.Option(help="With --digest: results of at least this severity are sent at once.")
]

RECEIVER_OPTIONS: Options = {
    "stream": (Annotated[str | None, typer.Option(metavar="STREAM", help="Only results of this stream.")], None),
    "pattern": (Annotated[str | None, typer.Option(metavar="PATTERN", help="Only results of this pattern.")], None),
    "key": (Annotated[str | None, typer.Option(metavar="KEY", help="Only results of this key.")], None),
    "min_severity": (_LeastSeverity, None),
    "kind": (Annotated[list[str] | None, typer.Option(metavar="KIND", callback=known_kinds, help=KINDS_HELP)], None),
    "name": (Annotated[str | None, typer.Option(metavar="NAME", help="Unique name, for lists and commands.")], None),
    "template": (_Template, None),
    "digest": (_Digest, None),
    "at_once": (_AtOnce, None),
}
"""The options of new receivers. Each kind of receiver has some of these."""


def secret_option(help_text: str) -> Options:
    """Return the option for the file with a receiver's secret. Each kind of receiver gives its own help text."""
    return {"secret_file": (Annotated[Path | None, typer.Option(metavar="FILE", help=help_text)], None)}


def members_of(
    kind: list[str] | None,
    template: Path | None = None,
    digest: str | None = None,
    at_once: Severity | None = None,
    secret_file: Path | None = None,
    **plain: str | None,
) -> dict[str, Any]:
    """Make the members of a new receiver from its options. Options that were not given are left out."""
    return without_none(
        **plain,
        kinds=kind or None,
        template=None if template is None else read_json(template),
        digest=digest_of(digest, at_once),
        secret=None if secret_file is None else read_text(secret_file).strip(),
    )


add_list_of_stream(webhooks, _WEBHOOKS)
add_show(webhooks, _WEBHOOKS, "a webhook, and the state of its deliveries")


@webhooks.command("add")
@in_place_of(
    "shared", {**RECEIVER_OPTIONS, **secret_option("File with the signing secret (default: a new one).")}, members_of
)
def add_webhook(
    client: Caller,
    target: Annotated[str, typer.Argument(help="URL to send to, http or https.")],
    shared: dict[str, Any],
    description: _Description = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="Further header of each request. Repeatable."),
    ] = None,
) -> None:
    """Send new results to a URL, and print the signing secret, which is shown only once."""
    body = without_none(url=target, description=description, headers=_headers(header) or None)
    _show_secret(client, client.post("/webhooks", {**body, **shared}))


@webhooks.command("change")
def change_webhook(
    client: Caller,
    webhook: WebhookId,
    target: Annotated[str | None, typer.Option("--to", metavar="URL", help="URL to send to, http or https.")] = None,
    stream: Annotated[str | None, typer.Option(metavar="STREAM|none", help="Only results of this stream.")] = None,
    pattern: Annotated[str | None, typer.Option(metavar="PATTERN|none", help="Only results of this pattern.")] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY|none", help="Only results of this key.")] = None,
    min_severity: _LeastSeverity = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", callback=known_kinds, help=f"{KINDS_HELP} Replaces the present ones."),
    ] = None,
    description: _Description = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME: VALUE'", help="Further header of each request. Repeatable. Replaces the present ones."
        ),
    ] = None,
    template: _Template = None,
    digest: Annotated[
        str | None,
        typer.Option(metavar="DURATION|none", help=f"{_DIGEST_HELP} none: send each result at once."),
    ] = None,
    at_once: _AtOnce = None,
) -> None:
    """Change a webhook; omitted options stay as they are."""
    members = without_none(url=target, description=description, headers=_headers(header) or None)
    every = None if digest == NONE else digest
    body = {**members, **members_of(kind, template, every, at_once, min_severity=min_severity)}
    filters = without_none(stream=stream, pattern=pattern, key=key)
    body |= {name: None if text == NONE else text for name, text in filters.items()}
    body |= {"digest": None} if digest == NONE else {}
    if not body:
        raise typer.BadParameter("say what to change, such as --to URL or --min-severity high")
    client.show(client.patch(_WEBHOOKS.path_of(client, webhook), body))


@webhooks.command()
def rotate(
    client: Caller,
    webhook: WebhookId,
    grace: Annotated[
        float | None,
        typer.Option(
            parser=as_seconds, metavar="DURATION", help="How long messages are also signed with the former secret."
        ),
    ] = None,
) -> None:
    """Rotate the signing secret and print the new one, which is shown only once."""
    body = {} if grace is None else {"grace_s": round(grace)}
    _show_secret(client, client.post(f"{_WEBHOOKS.path_of(client, webhook)}/rotate-secret", body))


def _receiver_argument(resource: Resource) -> Any:
    kind = resource.one
    return typer.Argument(metavar=kind.upper(), help=f"Id or name of the {kind}, as 'forestall {kind}s list' shows it.")


def add_deliveries(app: typer.Typer, resource: Resource) -> None:
    """Add the commands for deliveries that receivers of all kinds share."""
    name_argument = _receiver_argument(resource)

    @app.command("test", help="Send one test message at once. Exit status 1: the receiver did not accept it.")
    def send_test(client: Caller, receiver: str = name_argument) -> None:
        outcome = client.post(f"{resource.path_of(client, receiver)}/test", None)
        answer = "took it" if outcome["http_status"] is None else f"answered {outcome['http_status']}"
        if outcome["is_delivered"]:
            result = f"delivered: the receiver {answer} after {outcome['duration_s'] * 1_000:.0f} ms"
        else:
            result = f"not delivered: {outcome['error']}"
        client.say(outcome, result)
        raise typer.Exit(0 if outcome["is_delivered"] else 1)

    @app.command(help="List the latest delivery attempts, the newest first.")
    def deliveries(client: Caller, receiver: str = name_argument, after: After = None, limit: AtMost = 20) -> None:
        path = f"{resource.path_of(client, receiver)}/deliveries"
        _ATTEMPTS.show_pages(client, path, limit, after=after)

    @app.command(help="Queue one delivery again, or all that were abandoned since a time.")
    def redeliver(
        client: Caller,
        receiver: str = name_argument,
        delivery: Annotated[str | None, typer.Argument(help="Id of a delivery, or --since.")] = None,
        since: Annotated[
            str | None, typer.Option(metavar="TIME", help="All deliveries abandoned since this time (RFC 3339).")
        ] = None,
    ) -> None:
        if (delivery is None) == (since is None):
            raise typer.BadParameter("give the id of a delivery, or --since and a time")
        queued = _queued_again(client, resource.path_of(client, receiver), delivery, since)
        client.say({"queued": queued}, f"{queued} queued")


def add_switches(app: typer.Typer, resource: Resource) -> None:
    """Add the commands that suspend and resume deliveries."""
    kind, name_argument = resource.one, _receiver_argument(resource)

    @app.command(help="Resume deliveries, oldest first, and reset the failure count.")
    def enable(client: Client, receiver: str = name_argument) -> None:
        switch(client, receiver, enabled=True)

    @app.command(help="Suspend deliveries; queued ones wait.")
    def disable(client: Client, receiver: str = name_argument) -> None:
        switch(client, receiver, enabled=False)

    def switch(client: Client, receiver: str, *, enabled: bool) -> None:
        client.patch(resource.path_of(client, receiver), {"enabled": enabled})
        standard_error.say(f"the {kind} {receiver} is {'enabled' if enabled else 'disabled'}")


def _queued_again(client: Client, path: str, delivery: str | None, since: str | None) -> int:
    if delivery is not None:
        return int(client.post(f"{path}/deliveries/{part(delivery)}/redeliver", None)["queued"])
    queued = 0
    while True:
        answer = client.post(f"{path}/redeliver", {"since": since})
        queued += answer["queued"]
        if not answer["remaining"] or not answer["queued"]:
            return int(queued)


add_deliveries(webhooks, _WEBHOOKS)
add_switches(webhooks, _WEBHOOKS)
add_delete(webhooks, _WEBHOOKS, "Delete a webhook with its queued deliveries.")


def digest_of(every: str | None, at_once: Severity | None) -> dict[str, Any] | None:
    """Make the member ``digest`` from its options."""
    if every is None and at_once is not None:
        raise typer.BadParameter("give --digest, too", param_hint="--at-once")
    return None if every is None else without_none(every=every, at_once=at_once)


def _show_secret(client: Caller, webhook: Mapping[str, Any]) -> None:
    client.show_secret(webhook, "secret", "webhook", f"to {printable(webhook['url'])}", "webhooks")


def _headers(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts or []]
    for name, sign, _ in pairs:
        if not (name and sign):
            raise typer.BadParameter(f"{name!r} is not 'NAME: VALUE', such as 'authorization: Bearer abc'")
    return {name.strip(): value.strip() for name, _, value in pairs}
