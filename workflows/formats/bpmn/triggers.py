"""Triggers of events, and the events that catch thrown ones.

A thrown error, escalation or cancellation is caught at the nearest level around it with a matching event; an event for
the same code takes precedence over an event for any code. A throw without a code goes to an event for any code; if the
level has none, it may go to every event of the level that catches its kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.formats.bpmn.document import EVENT_DEFINITION, Document
from workflows.formats.bpmn.elements import BpmnElement
from workflows.nets.graph import Exit

THROWN = {"error": "errorRef", "escalation": "escalationRef", "cancel": ""}
"""Triggers that are thrown to an outer level -> the attribute with their reference."""
_CODES = ("errorCode", "escalationCode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger of an event, or its effect: its kind, such as ``message``, ``timer``, ``error``, ``terminate``.

    ``code`` identifies the error or escalation, empty: any; ``link`` is the name of a link.
    """

    kind: str
    code: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catcher:
    """An event that catches throws of a kind (a key of ``THROWN``) from a level; an empty code catches any code."""

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
        """The exits that a throw can take; empty if nothing catches it."""
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
    """The triggers from the definitions of an event."""
    return tuple(_trigger(definition, event, document) for definition in document.definitions_of(event))


def catchers_of(events: Iterable[BpmnElement], prefix: str, document: Document) -> tuple[Catcher, ...]:
    """The catchers of thrown triggers among boundary or start events."""
    return tuple(
        Catcher(exit=prefix + event.id, kind=trigger.kind, code=trigger.code)
        for event in events
        for trigger in triggers_of(event, document)
        if trigger.kind in THROWN
    )


def exit_of(event: BpmnElement, prefix: str, document: Document, thrown: set[str]) -> Exit:
    """A boundary event, or the start event of an event sub-process, as an exit of the block that it belongs to."""
    attribute = "cancelActivity" if event.kind == "boundaryEvent" else "isInterrupting"
    kinds = {trigger.kind for trigger in triggers_of(event, document)}
    return Exit(
        id=prefix + event.id,
        name=event.name,
        is_interrupting=bool(kinds & {"error", "cancel"}) or event.flag(attribute, default=True),
        is_thrown=prefix + event.id in thrown,
    )


def first_of(triggers: Sequence[Trigger], kinds: Iterable[str]) -> Trigger | None:
    """The first trigger of the first of ``kinds`` that occurs; None if none occurs."""
    return next((trigger for kind in kinds for trigger in triggers if trigger.kind == kind), None)


def link_of(event: BpmnElement, document: Document) -> str | None:
    """The name of the link that an event throws or catches; None if the event is not a link."""
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
