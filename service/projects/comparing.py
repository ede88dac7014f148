"""Compares the results of a plan's changed patterns in given events with those of the service's patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from nfa import atoms_of, parse_pattern
from service.projects.documents import Document
from service.projects.local import LocalProject
from service.projects.planning import Change, Plan, wanted_of, with_implied
from service.projects.resources import Wanted
from service.projects.results import Patterns, fed_by
from service.runs import EVENTS, Results
from streams import EventBatch

_Result: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference in the results of a pattern, or in the events of a derived stream.

    Attributes:
        title: The pattern or stream.
        list_name: ``alerts`` or ``events``.
        added: Results that only the project finds.
        lost: Results that only the service finds.
        same: Number of results that both find.
    """

    title: str
    list_name: str
    added: Sequence[_Result]
    lost: Sequence[_Result]
    same: int


class Comparison:
    """The project with its own patterns, and with the service's in their place.

    Everything else (streams, constraints, workflows, patterns that do not change) is the project's.

    Args:
        plan: Of the project.
        documents: Of the project.
        folder: Of the project.

    Raises:
        ProjectRefused: The project cannot run without a service.
    """

    def __init__(self, plan: Plan, documents: Sequence[Document], folder: Path) -> None:
        wanted = wanted_of(documents, folder)
        self._changes = {
            change.name: change
            for change in plan.work
            if isinstance(change.kind, Patterns) and change.wanted is not None
        }
        self.after = LocalProject.of_wanted(wanted)
        self.before = LocalProject.of_wanted(with_implied([*self._before(wanted)]))

    def differences(self, events: Mapping[str, EventBatch]) -> list[Difference]:
        """The added and lost results of each new or changed pattern, and of all that changes downstream of it."""
        after, before = self.after.run(events), self.before.run(events)
        found = [
            self._alerts(name, after, before) for name in _names(after, before, "alerts", "pattern", self._plain())
        ]
        found += [
            _compared(
                f"stream {name}",
                EVENTS,
                _of(after, EVENTS, "stream", name),
                _of(before, EVENTS, "stream", name),
                _without_id,
            )
            for name in _names(after, before, EVENTS, "stream", self._fed())
        ]
        asked = {f"pattern {name}" for name in self._plain()} | {f"stream {name}" for name in self._fed()}
        return [one for one in found if one.added or one.lost or one.title in asked]

    def _before(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """The wanted resources, with the service's patterns in place of the changed ones."""
        for one in wanted:
            change = self._changes.get(one.name) if isinstance(one.kind, Patterns) else None
            if change is None:
                yield one
            elif change.found is not None:
                yield replace(one, form=change.found.form, feeds=fed_by(change.found.form["text"]))

    def _plain(self) -> list[str]:
        """The changed patterns that give alerts."""
        return [name for name, change in self._changes.items() if not all(_fed(change))]

    def _fed(self) -> list[str]:
        """The derived streams that changed patterns feed, or have fed."""
        return list(dict.fromkeys(name for change in self._changes.values() for name in _fed(change) if name))

    def _alerts(self, name: str, after: Results, before: Results) -> Difference:
        change = self._changes.get(name)
        texts = [] if change is None else [form["text"] for form in _forms(change)]
        are_alike = len({frozenset(atom.alias for atom in atoms_of(parse_pattern(text).event)) for text in texts}) < 2
        added, lost = (_of(results, "alerts", "pattern", name) for results in (after, before))
        return _compared(f"pattern {name}", "alerts", added, lost, _bindings if are_alike else _bound_events)


def _forms(change: Change) -> list[Mapping[str, Any]]:
    return [one.form for one in (change.wanted, change.found) if one is not None]


def _fed(change: Change) -> list[str]:
    return [fed_by(form["text"]) for form in _forms(change)]


def _names(after: Results, before: Results, list_name: str, member: str, first: Sequence[str]) -> list[str]:
    """The names to compare: the changed ones first, then others with results."""
    return list(dict.fromkeys([*first, *(one[member] for some in (after, before) for one in some[list_name])]))


def _of(results: Results, list_name: str, member: str, name: str) -> list[_Result]:
    return [one for one in results[list_name] if one[member] == name]


def _compared(
    title: str,
    list_name: str,
    after: Sequence[_Result],
    before: Sequence[_Result],
    identity: Callable[[_Result], Any],
) -> Difference:
    keys = [{orjson.dumps(identity(one), option=orjson.OPT_SORT_KEYS): one for one in some} for some in (after, before)]
    return Difference(
        title=title,
        list_name=list_name,
        added=[one for key, one in keys[0].items() if key not in keys[1]],
        lost=[one for key, one in keys[1].items() if key not in keys[0]],
        same=len(keys[0].keys() & keys[1].keys()),
    )


def _without_id(one: _Result) -> Any:
    return {name: value for name, value in one.items() if name != "id"}


def _bindings(one: _Result) -> Any:
    return [one["key"], one["bindings"]]


def _bound_events(one: _Result) -> Any:
    return [one["key"], sorted({event for events in one["bindings"].values() for event in events})]
