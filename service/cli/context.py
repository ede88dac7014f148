"""``forestall context``: the services that this user calls, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import httpx
import typer

from service.cli.calling import IsJson, show_list
from service.cli.output import standard_error
from service.settings_contexts import Context, contexts_file, load_contexts

context = typer.Typer(help="Named services that commands call.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context, such as prod.")]


@context.command("add")
def add_context(
    name: Name,
    url: Annotated[str, typer.Option(metavar="URL", help="URL of the API, such as https://forestall.example.org.")],
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with an API key; the key itself is not stored.")
    ] = None,
) -> None:
    """Add or replace a context, and use it."""
    address = httpx.URL(url)
    if address.scheme not in ("http", "https") or not address.host:
        raise typer.BadParameter(f"{url!r} is not an http or https URL", param_hint="--url")
    contexts = load_contexts()
    place = "" if api_key_file is None else str(api_key_file.resolve())
    added = Context(url=url, api_key_file=place)
    added.api_key()  # refuses a key file that cannot be read
    contexts.named[name], contexts.current = added, name
    contexts.save()
    _tell(name, added)


@context.command("use")
def use_context(name: Name) -> None:
    """Switch to a context: commands call its service."""
    contexts = load_contexts()
    current = contexts.get(name)
    contexts.current = name
    contexts.save()
    _tell(name, current)


@context.command("list")
def list_contexts(is_json: IsJson = False) -> None:
    """List the contexts; the current one is marked."""
    contexts = load_contexts()
    rows = [
        {
            "name": name,
            "current": name == contexts.current,
            "url": entry.url,
            "api_key_file": entry.api_key_file or None,
        }
        for name, entry in sorted(contexts.named.items())
    ]
    columns = (("name", "name"), ("current", "current"), ("url", "url"), ("API key in", "api_key_file"))
    show_list(rows, columns, is_json=is_json)
    standard_error.say(f"kept in {contexts_file()}")


@context.command("delete")
def delete_context(name: Name) -> None:
    """Delete a context; if it is the current one, commands call the service of the settings."""
    contexts = load_contexts()
    contexts.get(name)
    del contexts.named[name]
    contexts.current = "" if contexts.current == name else contexts.current
    contexts.save()
    standard_error.say(f"the context {name} is deleted")


def _tell(name: str, current: Context) -> None:
    standard_error.say(f"commands call {name}: {current.url}")
