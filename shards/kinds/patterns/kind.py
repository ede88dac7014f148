"""Patterns as a kind of operator; processes that only list results do not load the matcher."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shards.errors import ShardError
from shards.feeds import Feed
from shards.kinds.patterns.errors import NotDerivable
from shards.kinds.patterns.result_kinds import PATTERN_RESULTS
from shards.operators import Host, Kind, SavedHost
from shards.results import ResultKind
from streams import Definition, StreamDeclaration

_INTO = re.compile(r"\binto\b", re.IGNORECASE)  # most texts lack INTO and are not parsed here


@dataclass(frozen=True)
class PatternKind(Kind):
    """Patterns; every stream has a host for them, because its constraints follow traces from the first event.

    Attributes:
        follows_all: Whether traces without bound events are followed, which constraints need; None: those of the
            correlation key.
        derives: Whether INTO feeds derived streams; otherwise it has no effect.
    """

    name: ClassVar[str] = "pattern"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = PATTERN_RESULTS
    letters: ClassVar[tuple[type[ShardError], ...]] = (NotDerivable,)
    is_resident: ClassVar[bool] = True
    exercise: ClassVar[str] = "constraints.exercises:guarded:shared,runs,idle,saved,guard,bits"
    follows_all: bool | None = None
    derives: bool = True

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
