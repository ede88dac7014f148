"""Events: what triggers them, and who catches what is thrown.

A thrown error, escalation or cancellation goes to the nearest level around it where an event catches it, one for the
same code before one for any. What says no code itself may go to each that catches its kind there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from workflows.formats.bpmn.document import EVENT_DEFINITION, Document
from workflows.formats.bpmn.elements import flag, id_of, kind_of, name_of
from workflows.nets.graph import Exit

THROWN = {"error": "errorRef", "escalation": "escalationRef", "cancel": ""}
"""Triggers that are thrown to a level around -> the attribute that says which."""
_CODES = ("errorCode", "escalationCode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """What an event waits for, or makes happen.

    Attributes:
        kind: Such as ``message``, ``timer``, ``error``, ``terminate``.
        code: Which error or escalation; empty for any.
        link: Name of a link.
    """

    kind: str
    code: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catcher:
    """An event that catches what is thrown in a level.

    Attributes:
        exit: Id of the exit that it is.
        kind: A key of ``THROWN``.
        code: Which; empty for any.
    """

    exit: str
    kind: str
    code: str


class Catchers:
    """Those of one level, and those around.

    Args:
        level: Those of the level.
        around: Those of the level around it.
    """

    def __init__(self, level: Iterable[Catcher] = (), around: Catchers | None = None) -> None:
        self._around = around
        self._by_code: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_kind: dict[str, list[str]] = defaultdict(list)
        for catcher in level:
            self._by_code[catcher.kind, catcher.code].append(catcher.exit)
            self._by_kind[catcher.kind].append(catcher.exit)

    def find(self, trigger: Trigger) -> tuple[str, ...]:
        """The exits that something thrown can take; empty if nobody catches it."""
        current: Catchers | None = self
        while current is not None:
            for code in (trigger.code, ""):
                if (trigger.kind, code) in current._by_code:
                    return (current._by_code[trigger.kind, code][0],)
            if not trigger.code and trigger.kind in current._by_kind:
                return tuple(current._by_kind[trigger.kind])
            current = current._around
        return ()


def triggers_of(event: Element, document: Document) -> tuple[Trigger, ...]:
    """What the definitions of an event say."""
    return tuple(_trigger(definition, event, document) for definition in document.definitions_of(event))


def catchers_of(events: Iterable[Element], prefix: str, document: Document) -> tuple[Catcher, ...]:
    """What boundary or start events catch of that which is thrown."""
    return tuple(
        Catcher(exit=prefix + id_of(event), kind=trigger.kind, code=trigger.code)
        for event in events
        for trigger in triggers_of(event, document)
        if trigger.kind in THROWN
    )


def exit_of(event: Element, prefix: str, document: Document, thrown: set[str]) -> Exit:
    """A boundary event, or the start event of an event sub-process, as a way out of what it interrupts or watches."""
    attribute = "cancelActivity" if kind_of(event) == "boundaryEvent" else "isInterrupting"
    kinds = {trigger.kind for trigger in triggers_of(event, document)}
    return Exit(
        id=prefix + id_of(event),
        name=name_of(event),
        is_interrupting=bool(kinds & {"error", "cancel"}) or flag(event, attribute, default=True),
        is_thrown=prefix + id_of(event) in thrown,
    )


def first_of(triggers: Sequence[Trigger], kinds: Iterable[str]) -> Trigger | None:
    """The first trigger of the first kind that is there."""
    return next((trigger for kind in kinds for trigger in triggers if trigger.kind == kind), None)


def link_of(event: Element, document: Document) -> str | None:
    """The name of the link that it throws or catches; None: it is no link."""
    trigger = first_of(triggers_of(event, document), ("link",))
    return trigger.link if trigger is not None else None


def _trigger(definition: Element, event: Element, document: Document) -> Trigger:
    kind = kind_of(definition).removesuffix(EVENT_DEFINITION)
    if kind == "link":
        return Trigger(kind=kind, link=name_of(definition) or name_of(event))
    reference = definition.get(THROWN.get(kind, ""), "").strip()
    if not reference:
        return Trigger(kind=kind)
    meant = document.find(reference)
    code = next((meant.get(code, "").strip() for code in _CODES if meant is not None and meant.get(code)), "")
    return Trigger(kind=kind, code=code or reference)
