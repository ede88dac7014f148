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
    """Patterns that are matched by further keys, by name of the key; ``declaration`` declares the keys."""

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
    """Patterns of the correlation key (None: ``key``), and of further keys: NAME=PATH or NAME:TYPE=PATH."""
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
