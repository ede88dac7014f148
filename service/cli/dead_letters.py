"""``forestall dead-letters``: list events that could not be processed, and send them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.calling import Caller, Commands
from service.cli.resources import After, AtMost, OfStream, Resource, Table, add_show
from service.client import Client

if TYPE_CHECKING:
    from service.client.wire import ReplayModel  # used for types only, so that commands need not import it

dead_letters = Commands(help="Dead letters of the running service.")

Code = Annotated[str | None, typer.Option(help="Only dead letters with this code, such as schema-broken.")]

_LARGEST_PAGE = 1_000
_LETTERS = Resource(
    path="/dead-letters",
    one="dead letter",
    listed="recent dead letters, the newest first",
    table=Table(
        ("id", "received_at", "stream", "origin", "code", "reason", "sent_again"),
        lambda letter: {
            **letter,
            "origin": " ".join(f"{name} {value}" for name, value in (letter.get("origin") or {}).items()),
            "sent_again": _outcome(letter.get("replay")),
        },
    ),
)
_SENT = Table(("id", "outcome"), lambda replay: {**replay, "outcome": _outcome(replay)})


@dead_letters.command("list")
def list_letters(
    client: Caller, stream: OfStream = None, code: Code = None, after: After = None, limit: AtMost = 20
) -> None:
    """List recent dead letters, the newest first."""
    _LETTERS.table.show_pages(client, _LETTERS.path, limit, stream=stream, code=code, after=after)


add_show(dead_letters, _LETTERS, "a dead letter with its event, and the result of sending it again")


@dead_letters.command()
def replay(
    client: Caller,
    letter: Annotated[str | None, typer.Argument(help="Id of the dead letter, or --all.")] = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="All dead letters that were not accepted yet, the oldest first.")
    ] = False,
    stream: OfStream = None,
    code: Code = None,
) -> None:
    """Send one dead letter again, or all, for example after a fix. Exit status 1: some were refused again."""
    if (letter is None) != is_all:
        raise typer.BadParameter("give the id of a dead letter, or --all")
    outcomes = _replay_all(client, stream, code) if letter is None else [client.dead_letters.replay(letter)]
    _SENT.show(client, outcomes)
    raise typer.Exit(0 if all(outcome["is_accepted"] for outcome in outcomes) else 1)


def _replay_all(client: Client, stream: str | None, code: str | None) -> list[ReplayModel]:
    """Send all dead letters again, a page at a time. Stop when none is left or a page repeats a letter."""
    sent: dict[str, ReplayModel] = {}
    while True:
        answer = client.dead_letters.replay_all(stream=stream, code=code, limit=_LARGEST_PAGE)
        fresh = {outcome["id"]: outcome for outcome in answer["items"] if outcome["id"] not in sent}
        sent |= fresh
        if len(fresh) < len(answer["items"]) or not answer["left"]:
            return list(sent.values())


def _outcome(replay: dict[str, Any] | None) -> str | None:
    if replay is None:
        return None
    return "accepted" if replay["is_accepted"] else f"refused: {replay['code']}: {replay['detail']}"
