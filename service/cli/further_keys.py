"""Patterns that are matched by further keys of a file, as a stream declares them (``docs/howto/several-keys.md``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nfa import Pattern
from service.cli.inputs import further_keys, require_keys
from service.trials.matching import MatchOptions, MatchReport, match_events, merged
from streams import EventBatch, KeyForm, StreamDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherKeys:
    """Patterns that are matched by further keys.

    Attributes:
        declaration: Declares the keys.
        by_route: By the name of a further key, the patterns that are matched by it.
    """

    declaration: StreamDeclaration
    by_route: Mapping[str, Sequence[Pattern]]

    @property
    def patterns(self) -> list[Pattern]:
        """All patterns, of every further key."""
        return [pattern for patterns in self.by_route.values() for pattern in patterns]

    def added_to(self, report: MatchReport, events: EventBatch, options: MatchOptions) -> MatchReport:
        """A report joined with the results of these patterns, to which constraints and end events do not apply."""
        for route, patterns in self.by_route.items():
            paths = self.declaration.route_paths(route)
            chosen = replace(options, key_paths=paths, idle_timeout_us=None, end_events=frozenset(), prune=None)
            found = match_events(patterns, events.keyed_by(self.declaration.attribute_of(route)), None, chosen)
            report = merged(report, found)
        return report


def by_key(
    patterns: Sequence[Pattern], key: KeyForm | None, further: Sequence[str]
) -> tuple[list[Pattern], FurtherKeys]:
    """Patterns of the correlation key, and those of further keys.

    Args:
        patterns: All of them.
        key: The correlation key; None: ``key``.
        further: The further keys, each NAME=PATH or NAME:TYPE=PATH.

    Raises:
        typer.BadParameter: A further key is not of that form, or is given twice.
        DeclarationError: The keys contradict each other.
        KeyMismatch: The ``WHERE [..]`` of a pattern contains no key.
    """
    if not further:
        require_keys(patterns, key)
        return list(patterns), FurtherKeys(declaration=StreamDeclaration(name="file", key=key or "key"), by_route={})
    from service.registering.routing import route_of  # noqa: PLC0415

    declaration = StreamDeclaration(name="file", key=key or "key", keys=further_keys(further))
    routes = [(route_of(pattern, declaration), pattern) for pattern in patterns]
    names = dict.fromkeys(route for route, _ in routes if route)
    by_route = {name: [pattern for route, pattern in routes if route == name] for name in names}
    own = [pattern for route, pattern in routes if not route]
    return own, FurtherKeys(declaration=declaration, by_route=by_route)
