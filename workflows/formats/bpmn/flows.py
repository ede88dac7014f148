"""Reads sequence flows with their sources and targets, in all forms that tools write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from workflows.formats.bpmn.document import Document, resolve
from workflows.formats.bpmn.elements import BpmnElement
from workflows.formats.findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFlow:
    """A sequence flow from one flow node to another. The id is unique in the process."""

    id: str
    source: str
    target: str
    is_conditional: bool = False


class FlowTable:
    """The sequence flows of a process and its sub-processes.

    Some of them may be written in another process of the file.
    """

    def __init__(self, process: BpmnElement, document: Document, findings: Findings) -> None:
        self._findings, self._document = findings, document
        self._leaving: dict[str, list[SequenceFlow]] = defaultdict(list)
        self._arriving: dict[str, list[SequenceFlow]] = defaultdict(list)
        nodes = [element for element in process.descendants() if element.is_flow_node and element.id]
        self._nodes = dict.fromkeys(element.id for element in nodes)
        self._sources = _mentions(nodes, "outgoing")
        self._targets = _mentions(nodes, "incoming")
        self._taken: dict[str, SequenceFlow] = {}
        elements = [element for element in process.descendants() if element.kind == "sequenceFlow"]
        for number, element in enumerate(elements):
            self._read(element, number)
        self._read_strays(elements, document)
        self._read_mentions(document)

    def leaving(self, node: str) -> list[SequenceFlow]:
        """Return the outgoing flows of a node in the order of the file."""
        return self._leaving.get(node, [])

    def arriving(self, node: str) -> list[SequenceFlow]:
        """Return the incoming flows of a node in the order of the file."""
        return self._arriving.get(node, [])

    def _read(self, element: BpmnElement, number: int) -> None:
        identity = element.id or f"sequenceFlow#{number}"
        place = element.id or _without_id(element)
        source = self._end(element, identity, "sourceRef", self._sources)
        target = self._end(element, identity, "targetRef", self._targets)
        if source is None and target is None:
            self._findings.note(place, "this flow has neither a source nor a target in the process and is left out")
        elif source is None or target is None:
            end, attribute = ("source", "sourceRef") if source is None else ("target", "targetRef")
            other = self._document.find(element.get(attribute, ""))
            if other is not None and not other.is_flow_node:
                self._findings.refuse(other.id, f"<{other.kind}> is not known here, and flows touch it; use a task")
            self._findings.refuse(
                place,
                f"this flow has no {end}: {attribute} {element.get(attribute, '')!r} is not an activity, event or "
                f"gateway of the process; connect it{'' if element.id else ', give it an id'} or remove it",
            )
        else:
            self._take(SequenceFlow(id=identity, source=source, target=target, is_conditional=_is_conditional(element)))

    def _end(self, element: BpmnElement, identity: str, attribute: str, mentions: dict[str, list[str]]) -> str | None:
        """Return the source or target of a flow: the node that ``attribute`` of its element names.

        If the attribute names no node, return the only node that lists the flow, or None if there is not exactly one.
        ``mentions`` has the nodes that list each flow.
        """
        written = resolve(element.get(attribute, ""), self._nodes)
        if written is not None:
            return written
        mentioned = mentions.get(identity, [])
        if len(mentioned) != 1:
            return None
        self._findings.note(
            identity, f"{attribute} is missing; {mentioned[0]}, which mentions the flow, is taken for it"
        )
        return mentioned[0]

    def _take(self, flow: SequenceFlow) -> None:
        other = self._taken.get(flow.id)
        if other is not None:
            if (other.source, other.target) == (flow.source, flow.target):
                self._findings.note(flow.id, "this flow is in the file twice and is read once")
                return
            self._findings.note(flow.id, "several flows have this id; they are distinguished by their ends")
            flow = SequenceFlow(
                id=f"{flow.id}#{len(self._taken)}",
                source=flow.source,
                target=flow.target,
                is_conditional=flow.is_conditional,
            )
        self._taken[flow.id] = flow
        self._leaving[flow.source].append(flow)
        self._arriving[flow.target].append(flow)

    def _read_strays(self, elements: Iterable[BpmnElement], document: Document) -> None:
        """Read the flows that are written in another process although they connect nodes of this process."""
        seen = {id(element) for element in elements}
        for source in self._nodes:
            for element in document.flows_from(source):
                target = resolve(element.get("targetRef", ""), self._nodes)
                if id(element) in seen or target is None or element.id in self._taken:
                    continue
                if document.is_repeated(source) or document.is_repeated(target):
                    continue
                name = element.id or f"sequenceFlow#{source}-{target}"
                self._findings.note(name, "this flow is in another process than its ends")
                flow = SequenceFlow(id=name, source=source, target=target, is_conditional=_is_conditional(element))
                self._take(flow)

    def _read_mentions(self, document: Document) -> None:
        """Read the flows that have no element: one node lists the flow as outgoing, another lists it as incoming."""
        for identity in self._sources:
            if (
                identity not in self._targets
                or resolve(identity, self._taken) is not None
                or document.find(identity) is not None
            ):
                continue
            sources, targets = self._sources[identity], self._targets[identity]
            if len(sources) == 1 and len(targets) == 1:
                self._findings.note(identity, f"this flow is only mentioned, by {sources[0]} and by {targets[0]}")
                self._take(SequenceFlow(id=identity, source=sources[0], target=targets[0]))


def _mentions(nodes: Iterable[BpmnElement], kind: str) -> dict[str, list[str]]:
    mentions: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        for mention in node.children(kind):
            flow = (mention.text or "").strip()
            if flow and node.id not in mentions[flow]:
                mentions[flow].append(node.id)
    return dict(sorted(mentions.items()))


def _without_id(element: BpmnElement) -> str:
    name = f" {element.name!r}" if element.name else ""
    ends = f"from {element.get('sourceRef', '')!r} to {element.get('targetRef', '')!r}"
    return f"sequence flow{name} {ends} (without id, line {element.line})"


def _is_conditional(element: BpmnElement) -> bool:
    return element.child("conditionExpression") is not None
