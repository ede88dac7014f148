"""``forestall patterns``: the patterns of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nfa import Pattern, parse_patterns, pattern_to_json
from service.cli.calling import ApiKeyOption, IsJson, Url, calling, given, part, show
from service.cli.inputs import read_pattern_files
from service.cli.operators import add_moves, tell_operator
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show
from service.errors import FileUnreadable

patterns = typer.Typer(help="Patterns of the running service.", no_args_is_help=True)


class Severity(StrEnum):
    """How grave what a pattern finds is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


Name = Annotated[str, typer.Argument(help="Name of the pattern.")]
Unguarded = Annotated[
    bool, typer.Option("--unguarded", help="The constraints do not end it: for one that looks for what breaks them.")
]


def _detail(found: Mapping[str, Any]) -> dict[str, Any]:
    """What people want to know of a pattern."""
    plain = ("name", "stream", "version", "state", "severity", "constraints", "text", "registered_at", "warnings")
    return {
        **{member: found[member] for member in plain},
        **({"suspended because": found["suspension"]["reason"]} if found["suspension"] else {}),
        "ended early by": [condition["text"] for condition in found["failing_conditions"]],
        "ended so far": {
            "in all": found["endings"]["total"],
            "reasons": [
                f"{reason['count']}: {reason['constraints'] or reason['form']}"
                for reason in found["endings"]["reasons"]
            ],
        },
    }


_PATTERNS = Resource(
    path="/patterns",
    one="pattern",
    listed="the patterns, by name",
    table=Table(("name", "stream", "state", "version", "severity", "text")),
    detailed=_detail,
)
_VERSIONS = Table(("version", "current", "constraints", "registered_at", "text"))

add_list_of_stream(patterns, _PATTERNS)
add_show(patterns, _PATTERNS, "a pattern, what ends it early under the constraints, and how often that happened")


@patterns.command("add")
def add_pattern(
    pattern: Annotated[str, typer.Argument(help="Pattern file with one pattern, text or .json, or the text itself.")],
    stream: Annotated[str, typer.Option(help="The stream that it is for.")],
    draft: Annotated[bool, typer.Option("--draft", help="Check it and write it down; matched once activated.")] = False,
    severity: Annotated[Severity | None, typer.Option(help="How grave what it finds is.")] = None,
    unguarded: Unguarded = False,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="The version before goes on for the partial matches that it has.")
    ] = False,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Register a pattern; another text under the same name is its next version."""
    body = given(
        stream=stream,
        **_form(pattern),
        state="draft" if draft else None,
        severity=severity,
        constraints="off" if unguarded else None,
        start="migrate" if migrate else None,
    )
    with calling(url, api_key) as client:
        tell_operator(client.post("/patterns", body), is_json=is_json)


add_moves(
    patterns,
    _PATTERNS,
    activate="Match a draft from now on.",
    pause="Let a pattern see nothing from now on; its partial matches go.",
    resume="Let a paused or suspended pattern see what comes from now on.",
    retire="Never match a pattern again; it stays listed with its counts.",
)
add_delete(patterns, _PATTERNS, "Delete a pattern; its alerts stay.")


@patterns.command("dry-run")
def dry_run(
    pattern: Annotated[str | None, typer.Argument(help="Pattern file, or the text itself; or say --name.")] = None,
    name: Annotated[str | None, typer.Option(help="A registered pattern, such as a draft.")] = None,
    stream: Annotated[str | None, typer.Option(help="The stream; that of the pattern with --name.")] = None,
    events: Annotated[int | None, typer.Option(min=1, help="So many of the newest events; 10,000 else.")] = None,
    unguarded: Unguarded = False,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Try a pattern on the newest events of a stream; nothing is kept."""
    if (pattern is None) == (name is None):
        raise typer.BadParameter("say the pattern, or the --name of one that is registered")
    form = {} if pattern is None else _form(pattern)
    body = given(name=name, stream=stream, events=events, constraints="off" if unguarded else None, **form)
    with calling(url, api_key) as client:
        show(client.post("/patterns/dry-run", body), is_json=is_json)


@patterns.command()
def statistics(name: Name, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """Count what all versions of a pattern have found, and why partial matches ended."""
    with calling(url, api_key) as client:
        show(client.get(f"/patterns/{part(name)}/statistics"), is_json=is_json)


@patterns.command()
def versions(name: Name, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """List the versions of a pattern, the oldest first."""
    with calling(url, api_key) as client:
        _VERSIONS.show(client.get(f"{_PATTERNS.path}/{part(name)}/versions")["items"], is_json=is_json)


def is_pattern(argument: str) -> bool:
    """Whether an argument is the text of a pattern or a file, and no name of one."""
    return _is_text(argument) or Path(argument).is_file()


def one_pattern(argument: str) -> Pattern:
    """The pattern of a file, or of the text itself.

    Raises:
        FileUnreadable: It is neither, or a file with another number of patterns.
        PatternRefused: With line and column.
    """
    if not is_pattern(argument):
        raise FileUnreadable(
            f"{argument!r} is neither a file nor a pattern; a pattern begins with PATTERN name EVENT", file=argument
        )
    is_text = _is_text(argument)
    found = parse_patterns(argument) if is_text else tuple(read_pattern_files([Path(argument)]))
    if len(found) != 1:
        names, where = ", ".join(pattern.name for pattern in found), "the text" if is_text else argument
        raise FileUnreadable(f"{where} holds {len(found)} patterns ({names}); send them one by one", file=where)
    return found[0]


def _is_text(argument: str) -> bool:
    return argument.lstrip().upper().startswith("PATTERN ")


def _form(argument: str) -> dict[str, Any]:
    """A pattern as the API takes it, from a file or from the text itself."""
    pattern = one_pattern(argument)
    return {"text": pattern.text} if pattern.text else {"definition": pattern_to_json(pattern)}
