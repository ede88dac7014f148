"""``forestall sinks``: receivers of results other than webhooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show
from service.cli.signatures import Command, in_place_of
from service.cli.webhooks import RECEIVER_OPTIONS, add_deliveries, add_switches, id_of, members_of, secret_option

sinks = Commands(help="Sinks of the running service other than webhooks.")

_SINKS = Resource(
    path="/sinks",
    one="sink",
    listed="the sinks, the oldest first",
    table=Table(("id", "name", "address", "stream", "pattern", "kinds", "enabled", "description")),
    identified=partial(id_of, path="/sinks"),
)

_SERVER = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")

add_list_of_stream(sinks, _SINKS)
add_show(sinks, _SINKS, "a sink, and the state of its deliveries")


def _with_shared(*further: str, login_help: str = "") -> Callable[[Command], Command]:
    """Return a decorator that replaces the parameter ``shared`` of a command by the options of all kinds of sinks.

    ``further`` names additional options. If ``login_help`` is not empty, the command also gets an option for a password
    file, with this help text.
    """
    names = ("stream", "pattern", "key", "min_severity", "kind", "name", *further)
    options = {name: RECEIVER_OPTIONS[name] for name in names}
    return in_place_of("shared", {**options, **(secret_option(login_help) if login_help else {})}, members_of)


@sinks.command("add-parquet")
@_with_shared("digest")
def add_parquet(
    client: Caller,
    path: Annotated[str, typer.Argument(help="Folder, relative to FORESTALL_WEBHOOKS__FOLDER of the service.")],
    shared: dict[str, Any],
) -> None:
    """Write results to Parquet files, by kind and day."""
    _add(client, kind="parquet", path=path, **shared)


@sinks.command("add-email")
@_with_shared("template", "digest", login_help="File with the password for the login.")
def add_email(
    client: Caller,
    to: Annotated[list[str], typer.Argument(help="Addresses of the recipients.")],
    host: Annotated[str, typer.Option(metavar="HOST[:PORT]", help="Mail server (default port: 465).")],
    sender: Annotated[str, typer.Option(metavar="ADDRESS", help="Address that the mail comes from.")],
    shared: dict[str, Any],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Name for the login.")] = None,
    starttls: Annotated[bool, typer.Option("--starttls", help="Use STARTTLS (default: TLS from the start).")] = False,
) -> None:
    """Send results by e-mail."""
    server, port = _server(host)
    mail_server = {"host": server, "port": port, "sender": sender, "recipients": to}
    _add(client, kind="email", security="starttls" if starttls else None, user=user, **mail_server, **shared)


@sinks.command("add-kafka")
@_with_shared("template", login_help="File with the password of SASL.")
def add_kafka(
    client: Caller,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    servers: Annotated[str, typer.Option(metavar="HOST:PORT,…", help="Bootstrap servers, separated by commas.")],
    shared: dict[str, Any],
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Setting of librdkafka, such as security.protocol=SASL_SSL. Repeatable."
        ),
    ] = None,
) -> None:
    """Produce results to a Kafka topic; the id of a result is the key."""
    pairs = [text.partition("=") for text in option or []]
    options = {key: value for key, _, value in pairs} or None
    _add(client, kind="kafka", servers=servers, topic=topic, options=options, **shared)


add_deliveries(sinks, _SINKS)
add_switches(sinks, _SINKS)
add_delete(sinks, _SINKS, "Delete a sink with its queued deliveries; results that it has written stay.")


def _server(text: str) -> tuple[str, int | None]:
    parts = _SERVER.fullmatch(text)
    port = int(parts["port"]) if parts and parts["port"] else None
    if parts is None or not (port is None or 1 <= port <= 65_535):
        raise typer.BadParameter(
            f"{text!r} is not HOST[:PORT], such as smtp.example.org:587 or [2001:db8::1]:25", param_hint="--host"
        )
    return parts["address"] or parts["name"], port


def _add(client: Caller, **members: Any) -> None:
    sink = client.post("/sinks", without_none(**members))
    client.say(sink, f"{sink['id']}: to {sink['address']}")
