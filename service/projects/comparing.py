"""Compares the results of a plan's changed operators with the results of the service's operators over given events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from nfa import atoms_of, parse_pattern
from service.projects.documents import Document
from service.projects.local import LocalProject
from service.projects.operators import Operators
from service.projects.planning import Change, Plan, wanted_of, with_implied
from service.projects.resources import Form, Wanted
from service.runs import EVENTS, LISTS
from shards import DERIVED, Likeness, ResultKind, identity_of
from streams import EventBatch

_Result: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The results that an operator or a derived stream gains and loses by a change.

    ``same`` counts unchanged results.
    """

    title: str
    list_name: str
    added: Sequence[_Result]
    lost: Sequence[_Result]
    same: int


class Comparison:
    """Runs a project twice over the same events, to compare the results before and after the changes of a plan.

    The run before the changes has the service's form of each changed operator. Raises ``ProjectRefused`` if the project
    cannot run without a service.
    """

    def __init__(self, plan: Plan, documents: Sequence[Document], folder: Path) -> None:
        wanted = wanted_of(documents, folder)
        changes = (
            planned for planned in plan.work if isinstance(planned.kind, Operators) and planned.wanted is not None
        )
        self._changes = {change.identity: change for change in changes}
        self.after = LocalProject.of_wanted(wanted)
        self.before = LocalProject.of_wanted(with_implied([*self._before(wanted)]))

    def differences(self, events: Mapping[str, EventBatch]) -> Iterator[Difference]:
        """Yield the difference of each new or changed operator, and of other operators whose results differ.

        If an operator feeds a derived stream, the events of this stream are compared.
        """
        after, before = self.after.run(events), self.before.run(events)
        titles = dict.fromkeys(title for change in self._changes.values() for title in _titles(change))
        for list_name, kind in {**LISTS, EVENTS: DERIVED}.items():
            if not kind.same_by:
                continue
            member, word = ("stream", "stream") if kind is DERIVED else (kind.subject, kind.subject)
            first = [title.removeprefix(f"{word} ") for title in titles if title.startswith(f"{word} ")]
            for name in dict.fromkeys(
                [*first, *(body[member] for results in (after, before) for body in results[list_name])]
            ):
                sides = [[body for body in results[list_name] if body[member] == name] for results in (after, before)]
                difference = self._compared(f"{word} {name}", list_name, kind, sides)
                if difference.added or difference.lost or difference.title in titles:
                    yield difference

    def _before(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """Yield the resources before the plan: without new operators, and with the stored form of changed operators."""
        for resource in wanted:
            change = self._changes.get((resource.kind.title, resource.name))
            if change is None:
                yield resource
            elif change.found is not None and isinstance(resource.kind, Operators):
                form = change.found.form
                yield replace(resource, form=form, feeds=resource.kind.fed(resource.name, form))

    def _compared(self, title: str, list_name: str, kind: ResultKind, sides: Sequence[Sequence[_Result]]) -> Difference:
        change = self._changes.get(("pattern", title.removeprefix("pattern ")))
        alike: Likeness = "bindings" if change is None or _has_same_aliases(change) else "events"
        after, before = ({identity_of(kind, body, {}, alike): body for body in results} for results in sides)
        return Difference(
            title=title,
            list_name=list_name,
            added=[body for key, body in after.items() if key not in before],
            lost=[body for key, body in before.items() if key not in after],
            same=len(after.keys() & before.keys()),
        )


def _forms(change: Change) -> list[Form]:
    return [resource.form for resource in (change.wanted, change.found) if resource is not None]


def _titles(change: Change) -> Iterator[str]:
    assert isinstance(change.kind, Operators), "only operators are compared"
    for form in _forms(change):
        stream = change.kind.fed(change.name, form)
        yield f"stream {stream}" if stream else change.title


def _has_same_aliases(change: Change) -> bool:
    texts = [form["text"] for form in _forms(change)]
    return len({frozenset(atom.alias for atom in atoms_of(parse_pattern(text).event)) for text in texts}) < 2
