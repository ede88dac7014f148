"""Patterns as a kind of operator; processes that only list results do not load the matcher."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from shards.errors import OperatorRefused, ShardError
from shards.feeds import Feed
from shards.kinds.patterns.errors import NotDerivable
from shards.kinds.patterns.result_kinds import PATTERN_RESULTS
from shards.operators import DocumentKind, Host, SavedHost
from shards.results import ResultKind
from streams import USUAL_BUDGET, Definition, Input, StreamDeclaration
from streams.tables import Lookup

_INTO = re.compile(r"\binto\b", re.IGNORECASE)  # most texts lack INTO and are not parsed here
_LOOKUP = re.compile(r"\b(lookup|table|in_table)\b", re.IGNORECASE)
_SCHEMA: Mapping[str, Any] = {
    "description": "A pattern of a stream. Its name is the one in its text.",
    "type": "object",
    "required": ["stream", "text"],
    "properties": {
        "stream": {"type": "string"},
        "text": {"type": "string", "description": "In the pattern language."},
        "constraints": {"enum": ["on", "off"]},
        "start": {"enum": ["fresh", "migrate"], "description": "What happens to partial matches when it changes."},
    },
}


@dataclass(frozen=True)
class PatternKind(DocumentKind):
    """Patterns; every stream has a host for them, because its constraints follow traces from the first event.

    Attributes:
        follows_all: Whether traces without bound events are followed, which constraints need; None: only by the
            correlation key.
        derives: Whether INTO feeds derived streams; otherwise it has no effect.
    """

    name: ClassVar[str] = "pattern"
    plural: ClassVar[str] = "patterns"
    schema: ClassVar[Mapping[str, Any]] = _SCHEMA
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({"constraints": "on"})
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
        """Check the text of a pattern.

        Raises:
            PatternError: The text is refused.
            OperatorRefused: Document and text have different names.
        """
        from nfa import parse_pattern  # noqa: PLC0415 - takes most of the start of a process

        parsed = parse_pattern(document["text"])
        if parsed.name != document["name"]:
            raise OperatorRefused(
                f"the text calls the pattern {parsed.name!r}, the document {document['name']!r}; give both one name",
                field="text",
            )

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        """Read the document of a pattern.

        Raises:
            PatternError: The text is refused.
            KeyMismatch: ``WHERE [..]`` contains no declared key of the stream.
            ForestallError: The stream is not declared.
        """
        from nfa import parse_pattern  # noqa: PLC0415 - takes most of the start of a process
        from shards.kinds.patterns.routing import route_of  # noqa: PLC0415 - loads the language

        declaration = declared(document["stream"])
        pattern = parse_pattern(document["text"])
        is_guarded = document.get("constraints", "on") == "on"
        return Definition(
            kind=self.name,
            name=pattern.name,
            version=0,
            inputs=(Input(declaration.name, route_of(pattern, declaration)),),
            body={"text": pattern.text, "is_guarded": is_guarded, "budget": USUAL_BUDGET.to_json()},
        )

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        """The lookups of a pattern.

        Raises:
            PatternError: The text is refused.
        """
        if _LOOKUP.search(definition.body["text"]) is None:
            return ()
        from nfa import lookups_in, parse_pattern  # noqa: PLC0415 - takes most of the start of a process

        return lookups_in(parse_pattern(definition.body["text"]))

    def feed(self, definition: Definition) -> Feed | None:
        """The derived stream of a pattern's INTO clause.

        Raises:
            PatternError: The text is refused.
        """
        if not self.derives or _INTO.search(definition.body["text"]) is None:
            return None
        from nfa import parse_pattern  # noqa: PLC0415 - takes most of the start of a process

        into = parse_pattern(definition.body["text"]).into
        return None if into is None else Feed(stream=into.stream, is_rekeyed=into.key is not None)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """A host; loads the matcher.

        Raises:
            DeclarationError: The stream does not declare the further key.
            ForestallError: The saved state cannot be read.
        """
        from shards.kinds.patterns.host import pattern_host  # noqa: PLC0415 - takes most of the start of a process

        return pattern_host(declaration, route, saved, follows_all=self.follows_all)
