"""Reads the triggers of events, and finds the events that catch a throw.

A thrown error, escalation or cancellation is caught at the nearest surrounding level with a matching event. An event
for the same code takes precedence over an event for any code. A throw without a code is caught by an event for any
code. If the level has none, any event of the level for the same kind of trigger may catch the throw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.formats.bpmn.document import EVENT_DEFINITION, Document
from workflows.formats.bpmn.elements import BpmnElement
from workflows.nets.graph import Exit

THROWN = {"error": "errorRef", "escalation": "escalationRef", "cancel": ""}
"""The kinds of triggers that are thrown to an outer level, each with the attribute that holds its reference."""
_CODES = ("errorCode", "escalationCode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The cause of an event, or the effect of a throwing event.

    ``kind`` is, for example, ``message``, ``timer`` or ``error``. ``code`` identifies the error or escalation; empty
    means any. ``link`` is the name of a link.
    """

    kind: str
    code: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catcher:
    """An event that catches throws of a kind (a key of ``THROWN``). A throw leads to its ``exit``.

    An empty code catches any code.
    """

    exit: str
    kind: str
    code: str


class Catchers:
    """The catchers of a level and of the levels around it."""

    def __init__(self, level: Iterable[Catcher] = (), around: Catchers | None = None) -> None:
        self._around = around
        self._by_code: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_kind: dict[str, list[str]] = defaultdict(list)
        for catcher in level:
            self._by_code[catcher.kind, catcher.code].append(catcher.exit)
            self._by_kind[catcher.kind].append(catcher.exit)

    def find(self, trigger: Trigger) -> tuple[str, ...]:
        """Return the exits to which a thrown trigger can lead, at the nearest level that catches it.

        Empty if none does.
        """
        current: Catchers | None = self
        while current is not None:
            for code in (trigger.code, ""):
                if (trigger.kind, code) in current._by_code:
                    return (current._by_code[trigger.kind, code][0],)
            if not trigger.code and trigger.kind in current._by_kind:
                return tuple(current._by_kind[trigger.kind])
            current = current._around
        return ()


def triggers_of(event: BpmnElement, document: Document) -> tuple[Trigger, ...]:
    """Return the triggers of an event, one for each of its definitions."""
    return tuple(_trigger(definition, event, document) for definition in document.definitions_of(event))


def catchers_of(events: Iterable[BpmnElement], prefix: str, document: Document) -> tuple[Catcher, ...]:
    """Return a catcher for each boundary or start event that reacts to a thrown trigger."""
    return tuple(
        Catcher(exit=prefix + event.id, kind=trigger.kind, code=trigger.code)
        for event in events
        for trigger in triggers_of(event, document)
        if trigger.kind in THROWN
    )


def exit_of(event: BpmnElement, prefix: str, document: Document, thrown: set[str]) -> Exit:
    """Return the exit of a block that a boundary event, or the start event of an event sub-process, becomes.

    ``thrown`` has the exits that some event throws to.
    """
    attribute = "cancelActivity" if event.kind == "boundaryEvent" else "isInterrupting"
    kinds = {trigger.kind for trigger in triggers_of(event, document)}
    return Exit(
        id=prefix + event.id,
        name=event.name,
        is_interrupting=bool(kinds & {"error", "cancel"}) or event.flag(attribute, default=True),
        is_thrown=prefix + event.id in thrown,
    )


def first_of(triggers: Sequence[Trigger], kinds: Iterable[str]) -> Trigger | None:
    """Return the first trigger whose kind comes earliest in ``kinds``, or None if no trigger has any of the kinds."""
    return next((trigger for kind in kinds for trigger in triggers if trigger.kind == kind), None)


def link_of(event: BpmnElement, document: Document) -> str | None:
    """Return the name of the link that an event throws or catches, or None if the event is not a link."""
    trigger = first_of(triggers_of(event, document), ("link",))
    return trigger.link if trigger is not None else None


def _trigger(definition: BpmnElement, event: BpmnElement, document: Document) -> Trigger:
    kind = definition.kind.removesuffix(EVENT_DEFINITION)
    if kind == "link":
        return Trigger(kind=kind, link=definition.name or event.name)
    reference = definition.get(THROWN.get(kind, ""), "").strip()
    if not reference:
        return Trigger(kind=kind)
    meant = document.find(reference)
    code = next((meant.get(code, "").strip() for code in _CODES if meant is not None and meant.get(code)), "")
    return Trigger(kind=kind, code=code or reference)
