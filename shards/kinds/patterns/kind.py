"""Patterns as a kind of operator. The matcher is imported on first use, so listing results does not load it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from shards.errors import OperatorRefused, RoundsImpossible, ShardError
from shards.feeds import Feed
from shards.kinds.patterns.errors import NotDerivable
from shards.kinds.patterns.result_kinds import PATTERN_RESULTS
from shards.kinds.patterns.sources import SUPPRESSION, alerts_stream, fed_stream
from shards.operators import DocumentKind, Host, Kind, Likeness, SavedHost
from shards.results import ResultKind
from streams import USUAL_BUDGET, Definition, Input, StreamDeclaration
from streams.tables import Lookup, Tables

if TYPE_CHECKING:
    from nfa import Pattern

_INTO = re.compile(r"\binto\b", re.IGNORECASE)  # most patterns lack INTO, and are not parsed here
_LOOKUP = re.compile(r"\b(lookup|table|in_table|row)\b|business", re.IGNORECASE)


def _quiet(description: str, needed: str, meaning: str) -> Mapping[str, Any]:
    by = "Columns of RETURN, or the key, whose values form the group; none: one group."
    return {
        "description": description,
        "type": ["object", "null"],
        "required": [needed],
        "additionalProperties": False,
        "properties": {
            "by": {"description": by, "type": "array", "items": {"type": "string"}},
            needed: {"type": "string", "description": meaning},
        },
    }


_SCHEMA: Mapping[str, Any] = {
    "description": "A pattern of a stream. Its name is the one in its text.",
    "type": "object",
    "required": ["stream", "text"],
    "properties": {
        "stream": {"type": "string"},
        "text": {"type": "string", "description": "In the pattern language."},
        "constraints": {"enum": ["on", "off"]},
        "start": {"enum": ["fresh", "migrate"], "description": "What happens to partial matches when it changes."},
        "suppress": _quiet(
            "Suppress alerts that follow another alert of their group.",
            "for",
            "Of event time after the alert that passed, such as 1 h.",
        ),
        "incident": _quiet(
            "The alerts of a group open an incident, and join it while it is open.",
            "close_after",
            "Of event time without an alert of the group, after which its incident closes, such as 2 h.",
        ),
        "resolves": _quiet(
            "Alerts close the open incident of their group.", "pattern", "The pattern whose incidents are closed."
        ),
    },
}


@dataclass(frozen=True)
class PatternKind(DocumentKind):
    """The kind of patterns.

    Every stream has a host of patterns, because its constraints follow traces from the first event.

    Attributes:
        follows_all: Whether traces without bound events are followed too, as constraints require. If None, only such
            traces of the correlation key are followed.
        derives: Whether INTO feeds derived streams. If not, INTO has no effect.
    """

    name: ClassVar[str] = "pattern"
    plural: ClassVar[str] = "patterns"
    schema: ClassVar[Mapping[str, Any]] = _SCHEMA
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"constraints": "on", "suppress": None, "incident": None, "resolves": None}
    )
    passing: ClassVar[frozenset[str]] = frozenset({"start"})
    holds: ClassVar[str] = ""
    has_own_resource: ClassVar[bool] = True
    result_kinds: ClassVar[tuple[ResultKind, ...]] = PATTERN_RESULTS
    letters: ClassVar[tuple[type[ShardError], ...]] = (NotDerivable,)
    is_resident: ClassVar[bool] = True
    exercise: ClassVar[str] = "constraints.exercises:guarded:shared,runs,idle,saved,guard,bits"
    follows_all: bool | None = None
    derives: bool = True

    def check(self, document: Mapping[str, Any]) -> None:
        parsed = _parsed(document["text"])
        if parsed.name != document["name"]:
            raise OperatorRefused(
                f"the text calls the pattern {parsed.name!r}, the document {document['name']!r}; give both one name",
                field="text",
            )

    def answered(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a pattern's document as the service's answers contain it. A missing ``by`` has its default value."""
        rules = {name: document[name] for name in ("suppress", "incident", "resolves") if document.get(name)}
        default_by = rules.get("suppress", {}).get("by", [])
        return {
            **document,
            **{name: {"by": default_by if name == "incident" else [], **rule} for name, rule in rules.items()},
        }

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        from shards.kinds.patterns.routing import routed  # noqa: PLC0415 - loads the language
        from shards.kinds.patterns.suppression import read_quiet  # noqa: PLC0415 - loads the language

        declaration = declared(document["stream"])
        pattern = _parsed(document["text"])
        on_stream = routed(pattern, declaration)
        suppression = read_quiet(document, on_stream)
        is_guarded = document.get("constraints", "on") == "on"
        return Definition(
            kind=self.name,
            name=pattern.name,
            version=0,
            inputs=(Input(declaration.name, on_stream.route),),
            body={
                "text": pattern.text,
                "is_guarded": is_guarded,
                "budget": USUAL_BUDGET.to_json(),
                **({} if suppression is None else {SUPPRESSION: suppression}),
            },
        )

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        if _LOOKUP.search(definition.body["text"]) is None:
            return ()
        from nfa import lookups_in  # noqa: PLC0415 - takes most of the start of a process

        return lookups_in(_parsed(definition.body["text"]))

    def exercise_for(
        self, definitions: Sequence[Definition], declaration: StreamDeclaration, constraints: Mapping[str, Any] | None
    ) -> str:
        from nfa import matcher_features, matching_exercise  # noqa: PLC0415 - takes long

        patterns = [_parsed(definition.body["text"]) for definition in definitions]
        is_idling = declaration.idle_timeout is not None
        features = matcher_features(patterns, ties=declaration.ties, is_idling=is_idling)
        if constraints is None:
            return matching_exercise(features)
        from constraints import guard_features, guarded_exercise, parse_constraints  # noqa: PLC0415 - takes long

        constraint_set = parse_constraints(constraints).constraint_set
        return guarded_exercise(features | guard_features(constraint_set, ties=declaration.ties))

    def likeness(self, first: Definition, other: Definition) -> Likeness:
        if _places_of(first) != _places_of(other):  # each shard compares only its own alerts
            raise RoundsImpossible(
                f"the alerts of the pattern {other.name!r} and of its counterpart are suppressed in different groups, "
                "which lie over several keys, so they cannot be compared; run each alone, and compare the counts"
            )
        return "bindings" if _aliases_of(first) == _aliases_of(other) else "events"

    def require_rows(self, definition: Definition, tables: Tables) -> None:
        from nfa import require_rows  # noqa: PLC0415 - takes most of the start of a process

        require_rows(_parsed(definition.body["text"]), tables)

    def parts(
        self, definition: Definition, declared: Callable[[str], StreamDeclaration] | None = None
    ) -> Sequence[Definition]:
        """Return the operator that suppresses a pattern's alerts and manages its incidents. A pattern may need none."""
        suppression, (source,) = definition.body.get(SUPPRESSION), definition.inputs
        if suppression is None or "resolves" in suppression:
            return ()
        into, body = Input(alerts_stream(definition.name)), {"stream": source.stream, SUPPRESSION: suppression}
        name, version = definition.name, definition.version
        return (Definition(kind=SUPPRESSION, name=name, version=version, inputs=(into,), body=body),)

    def inner_streams(self, name: str) -> Sequence[str]:
        return (alerts_stream(name),)

    def feed(self, definition: Definition) -> Feed | None:
        """Return the feed into the stream of a pattern's INTO clause, or into the inner stream of its alerts.

        None if the pattern has neither.
        """
        if self.derives and (suppression := definition.body.get(SUPPRESSION)) is not None:
            fed = fed_stream(definition.name, suppression)
            return Feed(stream=fed, is_rekeyed=suppression["is_rekeyed"], is_inner=True)
        if not self.derives or _INTO.search(definition.body["text"]) is None:
            return None
        into = _parsed(definition.body["text"]).into
        return None if into is None else Feed(stream=into.stream, is_rekeyed=into.key is not None)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.patterns.host import pattern_host  # noqa: PLC0415 - takes most of the start of a process

        return pattern_host(declaration, route, saved, follows_all=self.follows_all)


def _places_of(pattern: Definition) -> tuple[str, ...] | None:
    """Return the attributes whose values form the group of an alert, or None if the alerts keep the pattern's key."""
    suppression = pattern.body.get(SUPPRESSION)
    return tuple(suppression["by"]) if suppression and suppression["is_rekeyed"] else None


def _aliases_of(pattern: Definition) -> frozenset[str]:
    from nfa import atoms_of  # noqa: PLC0415 - takes most of the start of a process

    return frozenset(atom.alias for atom in atoms_of(_parsed(pattern.body["text"]).event))


def _parsed(text: str) -> Pattern:
    from nfa import parse_pattern  # noqa: PLC0415 - takes most of the start of a process

    return parse_pattern(text)


@dataclass(frozen=True)
class SuppressionKind(Kind):
    """The kind of operators that suppress alerts and manage incidents. Each operator is a part of its pattern."""

    name: ClassVar[str] = SUPPRESSION

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        from shards.kinds.patterns.suppressing import SuppressingOperator, SuppressionHost  # noqa: PLC0415 - takes long

        return SuppressionHost(self.name, declaration, route, SuppressingOperator, saved)
