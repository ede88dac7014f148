"""``forestall sinks``: receivers of results beside webhooks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from service.cli.calling import Caller, Commands, given, show_sentence
from service.cli.inputs import read_json, read_text
from service.cli.patterns import Severity
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show
from service.cli.webhooks import (
    LeastSeverity,
    OnlyKinds,
    OnlyPattern,
    OnlyStream,
    Template,
    add_deliveries,
    add_switches,
    digest_of,
    id_of,
)
from service.cli.wording import printable

sinks = Commands(help="Sinks of the running service other than webhooks.")

_SINKS = Resource(
    path="/sinks",
    one="sink",
    listed="the sinks, the oldest first",
    table=Table(("id", "name", "address", "stream", "pattern", "kinds", "enabled", "description")),
    identified=partial(id_of, path="/sinks"),
)

_Name: TypeAlias = Annotated[str | None, typer.Option(metavar="NAME", help="Unique name of the sink.")]
_SecretFile: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="File with the password.")]
_Every: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--digest", metavar="DURATION", help="Collect results for this long, and send them as one message: '10 min'."
    ),
]

add_list_of_stream(sinks, _SINKS)
add_show(sinks, _SINKS, "a sink, and the state of its deliveries")


@sinks.command("add-parquet")
def add_parquet(
    client: Caller,
    path: Annotated[str, typer.Argument(help="Folder, relative to FORESTALL_WEBHOOKS__FOLDER of the service.")],
    stream: OnlyStream = None,
    pattern: OnlyPattern = None,
    min_severity: LeastSeverity = None,
    kind: OnlyKinds = None,
    name: _Name = None,
    digest: _Every = None,
) -> None:
    """Write results to Parquet files, by kind and day."""
    shared = _shared(stream, pattern, min_severity, kind, name)
    _add(client, kind="parquet", path=path, digest=digest_of(digest, None), **shared)


@sinks.command("add-email")
def add_email(
    client: Caller,
    to: Annotated[list[str], typer.Argument(help="Addresses of the recipients.")],
    host: Annotated[str, typer.Option(metavar="HOST[:PORT]", help="Mail server (default port: 465).")],
    sender: Annotated[str, typer.Option(metavar="ADDRESS", help="Address that the mail comes from.")],
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Name for the login.")] = None,
    starttls: Annotated[bool, typer.Option("--starttls", help="Use STARTTLS (default: TLS from the start).")] = False,
    stream: OnlyStream = None,
    pattern: OnlyPattern = None,
    min_severity: LeastSeverity = None,
    kind: OnlyKinds = None,
    name: _Name = None,
    template: Template = None,
    digest: _Every = None,
    secret_file: _SecretFile = None,
) -> None:
    """Send results by e-mail."""
    server, _, port = host.partition(":")
    shared = _shared(stream, pattern, min_severity, kind, name)
    own: dict[str, Any] = {
        "host": server,
        "port": int(port) if port.isdigit() else None,
        "sender": sender,
        "recipients": to,
        "user": user,
    }
    own |= {"digest": digest_of(digest, None), **_filled(template, secret_file)}
    _add(client, kind="email", security="starttls" if starttls else None, **own, **shared)


@sinks.command("add-kafka")
def add_kafka(
    client: Caller,
    topic: Annotated[str, typer.Argument(help="The topic.")],
    servers: Annotated[str, typer.Option(metavar="HOST:PORT,…", help="Bootstrap servers, separated by commas.")],
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Setting of librdkafka, such as security.protocol=SASL_SSL. Repeatable."
        ),
    ] = None,
    stream: OnlyStream = None,
    pattern: OnlyPattern = None,
    min_severity: LeastSeverity = None,
    kind: OnlyKinds = None,
    name: _Name = None,
    template: Template = None,
    secret_file: _SecretFile = None,
) -> None:
    """Produce results to a Kafka topic; the id of a result is the key."""
    pairs = [text.partition("=") for text in option or []]
    options = {key: value for key, _, value in pairs} or None
    shared = _shared(stream, pattern, min_severity, kind, name)
    own = {"servers": servers, "topic": topic, "options": options, **_filled(template, secret_file)}
    _add(client, kind="kafka", **own, **shared)


add_deliveries(sinks, _SINKS)
add_switches(sinks, _SINKS)
add_delete(sinks, _SINKS, "Delete a sink with its queued deliveries; results that it has written stay.")


def _shared(
    stream: str | None, pattern: str | None, min_severity: Severity | None, kinds: list[str] | None, name: str | None
) -> dict[str, Any]:
    """The members of all kinds."""
    chosen = {"stream": stream, "pattern": pattern, "min_severity": min_severity}
    return {**chosen, "kinds": kinds or None, "name": name}


def _filled(template: Path | None, secret_file: Path | None) -> dict[str, Any]:
    """Template and password from their files."""
    return {
        "template": None if template is None else read_json(template),
        "secret": None if secret_file is None else read_text(secret_file).strip(),
    }


def _add(client: Caller, **members: Any) -> None:
    found = client.post("/sinks", given(**members))
    show_sentence(found, printable(f"{found['id']}: to {found['address']}"), is_json=client.is_json)
