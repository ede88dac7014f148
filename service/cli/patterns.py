"""``forestall patterns``: the patterns of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.choices import Incident, Resolves, Suppress, quiet_changes, quiet_of, suppress_of
from service.cli.inputs import read_patterns
from service.cli.operators import add_moves, kept_state, tell_operator
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show, reason_of
from service.client import condition, part
from service.errors import FileUnreadable

if TYPE_CHECKING:
    from nfa import Pattern

patterns = Commands(help="Patterns of the running service.")


Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
"""Severity of the alerts of a pattern."""

Name = Annotated[str, typer.Argument(help="Name of the pattern.")]
Unguarded = Annotated[
    bool,
    typer.Option(
        "--unguarded", help="Never terminate its partial matches by constraints; for patterns that look for violations."
    ),
]


def _failing(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"terminated early by": [condition["text"] for condition in document["failing_conditions"]]}


def _tried(answer: Mapping[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in answer.items():
        members |= _failing(answer) if name == "failing_conditions" else {name: value}
    return members


def _detail(pattern: Mapping[str, Any]) -> dict[str, Any]:
    plain = ("name", "stream", "version", "state", "severity", "constraints", "text", "created_at", "warnings")
    return {
        **{member: pattern[member] for member in plain},
        **({"suspended because": pattern["suspension"]["reason"]} if pattern["suspension"] else {}),
        **_failing(pattern),
        **{name: pattern[name] for name in ("suppress", "incident", "resolves") if pattern[name]},
        "early terminations": {
            "total": pattern["ending_summary"]["total"],
            "reasons": [reason_of(reason) for reason in pattern["ending_summary"]["reasons"]],
        },
    }


_PATTERNS = Resource(
    path="/patterns",
    one="pattern",
    listed="the patterns, by name",
    table=Table(("name", "stream", "state", "version", "severity", "text")),
    detailed=_detail,
)
_KEPT_MEMBERS = ("stream", "severity", "constraints", "suppress", "incident", "resolves")
_VERSIONS = Table(("version", "current", "constraints", "created_at", "text"))

add_list_of_stream(patterns, _PATTERNS)
add_show(patterns, _PATTERNS, "a pattern, the events that terminate it early, and their counts")


@patterns.command("add")
def add_pattern(
    client: Caller,
    pattern: Annotated[str, typer.Argument(help="File with one pattern, text or .json, or the text of a pattern.")],
    stream: Annotated[str, typer.Option(help="Stream in which the pattern is matched.")],
    draft: Annotated[bool, typer.Option("--draft", help="Store without starting; 'activate' starts.")] = False,
    severity: Annotated[Severity | None, typer.Option(help="Severity of its alerts.")] = None,
    unguarded: Unguarded = False,
    suppress: Suppress = None,
    incident: Incident = None,
    resolves: Resolves = None,
) -> None:
    """Register a pattern; to replace one, use 'change'."""
    body = without_none(
        stream=stream,
        **_form(pattern),
        state="draft" if draft else None,
        severity=severity,
        constraints="off" if unguarded else None,
        **quiet_of(suppress, incident, resolves),
    )
    tell_operator(client, client.post("/patterns", body))


@patterns.command("change")
def change_pattern(
    client: Caller,
    name: Name,
    pattern: Annotated[
        str | None,
        typer.Argument(help="File with the new pattern, text or .json, or its text (default: unchanged)."),
    ] = None,
    severity: Annotated[Severity | None, typer.Option(help="Severity of its new alerts.")] = None,
    unguarded: Unguarded = False,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Let the former version complete its partial matches.")
    ] = False,
    suppress: Suppress = None,
    incident: Incident = None,
    resolves: Resolves = None,
) -> None:
    """Change a pattern; a new text is its next version. Omitted options and a draft or a pause stay as they are.

    '--suppress none', '--incident none' and '--resolves none' remove these members.
    """
    quiet = quiet_changes(suppress=suppress, incident=incident, resolves=resolves)
    path = f"{_PATTERNS.path}/{part(name)}"
    if pattern is None and severity is not None and not (unguarded or migrate or quiet):
        operator = client.patch(path, {"severity": severity})
    else:
        stored, tag = client.find(path) or (client.get(path), "")  # without an ETag, because the pattern does not exist
        members = {member: stored[member] for member in _KEPT_MEMBERS}
        changes = without_none(severity=severity, constraints="off" if unguarded else None) | quiet | kept_state(stored)
        form = {"text": stored["text"]} if pattern is None else _form(pattern)
        body = {**members, **changes, **form, **without_none(start="migrate" if migrate else None)}
        operator = client.request("PUT", path, body=body, headers=condition(tag))
    tell_operator(client, operator)


add_moves(
    patterns,
    _PATTERNS,
    activate="Start a pattern that was added with --draft.",
    pause="Pause a pattern: it sees no events, and its partial matches are dropped.",
    resume="Resume a paused or suspended pattern.",
    retire="Retire a pattern for good; it stays listed with its results.",
)
add_delete(patterns, _PATTERNS, "Delete a pattern; its alerts are kept.")


@patterns.command("dry-run")
def dry_run(
    client: Caller,
    pattern: Annotated[
        str | None, typer.Argument(help="Pattern file, or the text of a pattern; or use --name.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of a registered pattern, such as a draft.")] = None,
    stream: Annotated[str | None, typer.Option(help="The stream (default: that of the registered pattern).")] = None,
    events: Annotated[
        int | None, typer.Option(min=1, help="Number of newest events to try it on (default: 10,000).")
    ] = None,
    unguarded: Unguarded = False,
    suppress: Suppress = None,
) -> None:
    """Try a pattern on the newest events of a stream; nothing is stored."""
    if (pattern is None) == (name is None):
        raise typer.BadParameter("give a pattern, or the --name of a registered one")
    form = {} if pattern is None else _form(pattern)
    quiet = without_none(suppress=suppress_of(suppress))
    body = without_none(
        name=name, stream=stream, events=events, constraints="off" if unguarded else None, **quiet, **form
    )
    answer = client.post("/patterns/dry-run", body)
    client.show(answer if client.is_json else _tried(answer))


@patterns.command()
def statistics(client: Caller, name: Name) -> None:
    """Show counts of the results of a pattern, over all versions, and the reasons of early terminations."""
    counts = client.patterns.statistics(name)
    summary = counts["ending_summary"]
    in_words = {**summary, "reasons": [reason_of(reason) for reason in summary["reasons"]]}
    client.show(counts if client.is_json else {**counts, "ending_summary": in_words})


@patterns.command()
def versions(client: Caller, name: Name) -> None:
    """List the versions of a pattern, the oldest first."""
    _VERSIONS.show(client, client.get(f"{_PATTERNS.path}/{part(name)}/versions")["items"])


def one_pattern(argument: str) -> Pattern:
    """Read the pattern of a file or a text. Raises ``FileUnreadable`` unless there is exactly one."""
    candidates = read_patterns(argument)
    if len(candidates) != 1:
        names, where = (
            ", ".join(pattern.name for pattern in candidates),
            argument if Path(argument).is_file() else "the text",
        )
        raise FileUnreadable(
            f"{where} contains {len(candidates)} patterns ({names}); register them one at a time", file=where
        )
    return candidates[0]


def _form(argument: str) -> dict[str, Any]:
    from nfa import pattern_to_json  # noqa: PLC0415 - as in service.cli.inputs

    pattern = one_pattern(argument)
    return {"text": pattern.text} if pattern.text else {"definition": pattern_to_json(pattern)}
