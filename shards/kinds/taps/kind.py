"""Taps as a kind of operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from shards.errors import OperatorRefused
from shards.feeds import Feed
from shards.kinds.patterns.result_kinds import AS_EVENTS, TIMEOUT
from shards.operators import DocumentKind, Host, SavedHost
from streams import DeclarationError, Definition, Input, StreamDeclaration, shown

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "of": {"type": "string", "description": "The stream whose results become events."},
        "results": {
            "enum": list(AS_EVENTS),
            "description": "endings are early terminations, timeouts those of patterns with EMIT TIMEOUTS, deviations "
            "the transactions that break the stream's workflow or constraints.",
        },
        "route": {
            "type": "string",
            "description": "A further key of the stream: timeouts of the patterns that are matched by it (default: by "
            "the correlation key).",
        },
        "type": {"type": "string", "description": "Type of the derived events (default: the name)."},
    },
    "required": ["of", "results"],
    "examples": [{"name": "stopped", "of": "orders", "results": "endings"}],
}


@dataclass(frozen=True)
class TapKind(DocumentKind):
    """The kind of taps. A tap turns results of one kind into events of the derived stream with the tap's name."""

    name: ClassVar[str] = "tap"
    plural: ClassVar[str] = "taps"
    hears: ClassVar[str] = "pattern"
    is_final: ClassVar[bool] = True
    schema: ClassVar[Mapping[str, Any]] = _SCHEMA
    holds: ClassVar[str] = ""

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        name = document["name"]
        body = {member: value for member, value in document.items() if member not in ("kind", "name")}
        properties = _SCHEMA["properties"]
        for member in body:
            if member not in properties:
                raise OperatorRefused(f"a tap has no {member!r}; it takes name, {', '.join(properties)}", field=member)
        for member in properties:
            value = body.get(member, "" if member not in _SCHEMA["required"] else None)
            if not isinstance(value, str) or (member in body and not value):
                raise OperatorRefused(f"{member!r} of a tap is a text, got {shown(value)}", field=member)
        if body["results"] not in AS_EVENTS:
            raise OperatorRefused(
                f"'results' of a tap is {' or '.join(AS_EVENTS)}, got {shown(body['results'])}; matches become events "
                "by INTO in their patterns",
                field="results",
            )
        return Definition(
            kind=self.name, name=name, version=0, inputs=(_source(body, declared(body["of"])),), body=body
        )

    def explain(self, definition: Definition) -> Sequence[str]:
        body, (source,) = definition.body, definition.inputs
        kind = body.get("type", definition.name)
        effect = f"The {body['results']} of the stream {source.stream!r} become events of the type {kind!r}"
        return (f"{effect}, with the keys of their transactions, in the same step.", "It keeps no state.")

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        stream = definition.inputs[0].stream
        if definition.body["results"] == TIMEOUT.plural or has_constraints(stream):
            return ()
        return (f"the stream {stream!r} follows no workflow and has no constraints, so it has no such results",)

    def feed(self, definition: Definition) -> Feed:
        return Feed(stream=definition.name)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.taps.host import Tap, TapHost  # noqa: PLC0415 - takes long

        return TapHost(self.name, declaration, route, Tap, saved)


def _source(body: Mapping[str, Any], stream: StreamDeclaration) -> Input:
    route = body.get("route", "")
    if route and body["results"] != TIMEOUT.plural:
        raise OperatorRefused(
            f"'route' is for timeouts; {body['results']} follow from constraints, which are about the correlation key",
            field="route",
        )
    try:
        return Input(stream.name, route if not route or stream.attribute_of(route) else "")
    except DeclarationError as error:
        raise OperatorRefused(error.message, field="route") from error
