"""Reads the drawing of a process from BPMN diagram interchange, if the file contains one."""

from __future__ import annotations

import math
from collections.abc import Mapping

from workflows.diagram import Diagram, Edge, Point, Shape
from workflows.formats.bpmn.document import Document, resolve
from workflows.formats.bpmn.elements import CALL, SUB_PROCESSES, BpmnElement, split_tag
from workflows.formats.findings import Findings
from workflows.naming import normalised

_FARTHEST = 1e7
_KINDS = {
    "exclusiveGateway": "exclusive",
    "parallelGateway": "parallel",
    "inclusiveGateway": "inclusive",
    "eventBasedGateway": "event-based",
    "startEvent": "start",
    "endEvent": "end",
    "intermediateCatchEvent": "intermediate",
    "intermediateThrowEvent": "intermediate",
    "implicitThrowEvent": "intermediate",
    "boundaryEvent": "boundary",
    "participant": "pool",
    "lane": "lane",
    "textAnnotation": "note",
    "dataObject": "data",
    "dataObjectReference": "data",
    "dataStoreReference": "data",
    "dataInput": "data",
    "dataOutput": "data",
}
_DASHED = frozenset({"association", "dataInputAssociation", "dataOutputAssociation"})
_BEHIND = {"pool": 0, "lane": 1, "subprocess": 2, "boundary": 4}
_OTHER = 3


def read_diagram(
    document: Document, process: BpmnElement, events: Mapping[str, str], findings: Findings
) -> Diagram | None:
    """Read the drawing of a process, with its pool and lanes. Return None if the file has no drawing of the process.

    If the file has several pages, the page that shows most elements of the process is read. ``events`` maps ids of
    elements to the event types that they emit.
    """
    drawn = {element.id: element for element in process.descendants() if element.id}
    participant = document.participant_of(process)
    if participant is not None:
        drawn[participant.id] = participant
    pages = [_Page(plane, drawn, events) for plane in _planes(document.root)]
    page = max(pages, key=lambda candidate: len(candidate.shapes), default=None)
    if page is None or not page.shapes:
        return None
    if page.unreadable:
        findings.note("", f"{page.unreadable} shapes or lines of the drawing have no readable position")
    return Diagram(shapes=tuple(page.shapes), edges=tuple(page.edges))


class _Page:
    def __init__(self, plane: BpmnElement, drawn: Mapping[str, BpmnElement], events: Mapping[str, str]) -> None:
        self.unreadable = 0
        self._drawn = drawn
        hidden = self._hidden(plane)
        shapes: list[tuple[int, float, int, Shape]] = []
        self.edges: list[Edge] = []
        for item in plane:
            element = self._meant(item)
            if element is None or element.id in hidden:
                continue
            if _is(item, "BPMNShape"):
                shape = self._shape(item, element, events)
                if shape is not None:
                    shapes.append((_BEHIND.get(shape.kind, _OTHER), _depth(shape), len(shapes), shape))
            elif _is(item, "BPMNEdge"):
                self._add_edge(item, element)
        self.shapes = [shape for *_, shape in sorted(shapes, key=lambda entry: entry[:3])]

    def _meant(self, item: BpmnElement) -> BpmnElement | None:
        identity = resolve(item.get("bpmnElement", ""), self._drawn)
        return self._drawn[identity] if identity is not None else None

    def _hidden(self, plane: BpmnElement) -> set[str]:
        hidden: set[str] = set()
        for item in plane:
            element = self._meant(item)
            if element is not None and element.kind in SUB_PROCESSES and not item.flag("isExpanded", default=True):
                hidden.update(inner.id for inner in element.descendants())
        return hidden

    def _shape(self, item: BpmnElement, element: BpmnElement, events: Mapping[str, str]) -> Shape | None:
        kind = _kind(element, events)
        if kind is None:
            return None
        numbers = _numbers(next((part for part in item if _is(part, "Bounds")), None), ("x", "y", "width", "height"))
        if numbers is None or min(numbers[2:]) < 0:
            self.unreadable += 1
            return None
        x, y, width, height = numbers
        return Shape(
            element=element.id,
            kind=kind,
            label=_text(element),
            x=x,
            y=y,
            width=width,
            height=height,
            event=events.get(element.id),
        )

    def _add_edge(self, item: BpmnElement, element: BpmnElement) -> None:
        points = [_numbers(part, ("x", "y")) for part in item if _is(part, "waypoint")]
        read: list[Point] = [(point[0], point[1]) for point in points if point is not None]
        if len(read) < len(points) or len(read) < 2:
            self.unreadable += 1
            return
        is_dashed = element.kind in _DASHED
        self.edges.append(Edge(element=element.id, points=tuple(read), label=element.name, is_dashed=is_dashed))


def _depth(shape: Shape) -> float:
    """Return a sort key that draws larger containers (pools, lanes, sub-processes) before smaller ones."""
    return -shape.width * shape.height if shape.kind in _BEHIND else 0.0


def _planes(root: BpmnElement) -> list[BpmnElement]:
    return [plane for diagram in root if _is(diagram, "BPMNDiagram") for plane in diagram if _is(plane, "BPMNPlane")]


def _is(element: BpmnElement, name: str) -> bool:
    return split_tag(element.tag)[1] == name


def _kind(element: BpmnElement, events: Mapping[str, str]) -> str | None:
    kind = element.kind
    if kind in SUB_PROCESSES or (kind == CALL and element.id not in events):
        return "task" if element.id in events else "subprocess"
    return "task" if element.is_activity else _KINDS.get(kind)


def _text(element: BpmnElement) -> str:
    if element.kind == "textAnnotation":
        return normalised(element.text_of("text"))
    return element.name


def _numbers(element: BpmnElement | None, names: tuple[str, ...]) -> tuple[float, ...] | None:
    """Read attributes as numbers. Return None if one is missing, not a number, or too large for a drawing."""
    if element is None:
        return None
    try:
        numbers = tuple(float(element.get(name, "")) for name in names)
    except ValueError:
        return None
    return numbers if all(math.isfinite(number) and abs(number) <= _FARTHEST for number in numbers) else None
