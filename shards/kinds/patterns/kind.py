"""Patterns as a kind of operator, without the matcher: who only lists results does not load it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shards.kinds.patterns.result_kinds import PATTERN_RESULTS
from shards.operators import Host, SavedHost
from shards.results import ResultKind
from streams import StreamDeclaration


@dataclass(frozen=True)
class PatternKind:
    """Patterns; every stream has a host of them, as its constraints follow traces from their first event."""

    name: ClassVar[str] = "pattern"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = PATTERN_RESULTS
    is_resident: ClassVar[bool] = True

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """A host; loads the matcher.

        Raises:
            DeclarationError: The stream does not declare that key.
            ForestallError: The saved state cannot be read.
        """
        from shards.kinds.patterns.host import pattern_host  # noqa: PLC0415 - takes most of the start of a process

        return pattern_host(declaration, route, saved)
