"""Reads the event types and the repetitions of activities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workflows.formats.bpmn.elements import BpmnElement
from workflows.formats.findings import Findings
from workflows.formats.mapping import INSTANCES, ONE_OR_MORE, event_type
from workflows.nets.graph import Repeat

MOST_REPETITIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The event types that activities and intermediate events of a BPMN process emit.

    If the mapping has the id or the name of an activity, the activity emits the mapped type, or no event if the type is
    None. Otherwise it emits its name, or its id if it has no name.
    """

    mapping: Mapping[str, str | None]

    @property
    def least_instances(self) -> int:
        """The least number of instances of a multi-instance activity whose model gives no number.

        The number is 1 if the mapping's setting ``:instances`` requires an instance, otherwise 0.
        """
        return int(self.mapping.get(INSTANCES) == ONE_OR_MORE)

    def is_mapped(self, element: BpmnElement) -> bool:
        return element.id in self.mapping or (element.name or None) in self.mapping

    def label_of(self, element: BpmnElement) -> str | None:
        """Return the event type that an element emits, or None for a silent element."""
        name = element.name
        return event_type(self.mapping, element.id, name, name or element.id)

    def mapped_label(self, element: BpmnElement) -> str | None:
        """Return the event type that the mapping gives an element.

        The result is None if the element is silent or not in the mapping.
        """
        return event_type(self.mapping, element.id, element.name, None)


def repeat_of(element: BpmnElement, is_single: bool, least: int, findings: Findings) -> Repeat | None:
    """Return the repetition of an activity by its loop or multi-instance marker, or None if it has no marker.

    If ``is_single``, an activity has at most one event, so concurrent instances are read as sequential ones. ``least``,
    0 or 1, is the least number of instances for a marker without a number.
    """
    for loop in element.children("standardLoopCharacteristics"):
        most = _read_maximum(loop.get("loopMaximum", ""), element, findings)
        return Repeat(least=0 if loop.flag("testBefore", default=False) else 1, most=most)
    for loop in element.children("multiInstanceLoopCharacteristics"):
        repeat = _instances(loop, element, is_single, findings)
        return Repeat(least=least, is_parallel=repeat.is_parallel) if repeat.most is None else repeat
    return None


def check_quantities(element: BpmnElement, findings: Findings) -> None:
    """Reject an activity that consumes or produces more than one token."""
    for attribute, what in (("startQuantity", "waits for"), ("completionQuantity", "gives")):
        written = element.get(attribute, "").strip()
        if written not in ("", "1"):
            findings.refuse(
                element.id, f"{element.described} {what} {written} tokens ({attribute}), which is not read; use 1"
            )


def _instances(loop: BpmnElement, element: BpmnElement, is_single: bool, findings: Findings) -> Repeat:
    is_parallel = not loop.flag("isSequential", default=False) and not is_single
    number = _read_number(loop.text_of("loopCardinality"))
    can_stop = loop.child("completionCondition") is not None
    if can_stop and is_parallel:
        findings.refuse(
            element.id,
            f"{element.described} has a completion condition that can end instances half-way, which is not read; "
            f"make the instances sequential or remove the condition",
        )
    if number is None:
        return Repeat(is_parallel=is_parallel)
    if number > MOST_REPETITIONS:
        findings.refuse(
            element.id,
            f"{element.described} has {number:,} instances; {MOST_REPETITIONS:,} can be read; leave the number out",
        )
    return Repeat(least=min(number, 1) if can_stop else number, most=number, is_parallel=is_parallel)


def _read_maximum(written: str, element: BpmnElement, findings: Findings) -> int | None:
    number = _read_number(written)
    if number is None or number < 1 or number > MOST_REPETITIONS:
        if written.strip():
            findings.note(
                element.id,
                f"loopMaximum {written!r} is not a number from 1 to {MOST_REPETITIONS:,} and is left out",
            )
        return None
    return number


def _read_number(written: str) -> int | None:
    digits = written.strip().removeprefix("=").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
