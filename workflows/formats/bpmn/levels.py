"""Sorts the elements of a level, that is, the direct children of a process or sub-process, by how they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from constraints import overlapping
from workflows.formats.bpmn.document import EVENT_DEFINITION, Document, resolve
from workflows.formats.bpmn.draft import Budget
from workflows.formats.bpmn.elements import SUB_PROCESSES, WITHOUT_MEANING, BpmnElement
from workflows.formats.bpmn.flows import FlowTable
from workflows.formats.bpmn.triggers import Catchers, link_of, triggers_of
from workflows.formats.findings import Findings
from workflows.nets.graph import Node, NodeKind

_CHOREOGRAPHY = frozenset({"choreographyTask", "subChoreography", "callChoreography"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessScope:
    """A process or sub-process that is being read, with its surroundings.

    Attributes:
        prefix: Prefix of all ids in the scope, which names the call activities that lead to the scope.
        catchers: The events around the scope that catch errors, escalations and cancellations thrown in it.
        calls: The called processes from the outermost to the current one, each with its call activity in words.
        terminator: The exit that ends the scope together with its event sub-processes; empty if it has none.
    """

    element: BpmnElement
    identity: str
    prefix: str
    flows: FlowTable
    catchers: Catchers
    calls: tuple[tuple[str, str], ...] = ()
    depth: int = 0
    terminator: str = ""

    def node(self, element: BpmnElement, kind: NodeKind) -> Node:
        return Node(id=self.prefix + element.id, kind=kind, name=element.name, described=element.described)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The direct children of a process or sub-process (a scope), sorted by how they are read.

    Attributes:
        nodes: Elements that tokens pass, by id: all flow nodes except boundary events and event sub-processes.
        boundary: The boundary events of each activity, by the activity's id.
        links: The ids of the events that catch a link, by the link's name.
    """

    scope: ProcessScope
    nodes: dict[str, BpmnElement]
    boundary: dict[str, list[BpmnElement]]
    event_sub_processes: tuple[BpmnElement, ...] = ()
    links: Mapping[str, list[str]]

    def fragments(self) -> tuple[Level, ...]:
        """Return the connected parts of the level as levels, in the order of the file. No flow connects two of them."""
        hosts = {event.id: host for host, events in self.boundary.items() for event in events}
        touching: dict[str, set[str]] = {identity: {identity} for identity in self.nodes}
        for identity in (*self.nodes, *hosts):
            targets = {flow.target for flow in self.scope.flows.leaving(identity)}
            touching[hosts.get(identity, identity)] |= targets.intersection(self.nodes)
        return tuple(
            replace(self, nodes={identity: self.nodes[identity] for identity in part}, event_sub_processes=())
            for part in overlapping(touching)
        )


class LevelReader:
    """Sorts the elements of scopes into levels, and repairs small faults.

    ``handlers`` has the ids of the compensation handlers that were left out.
    """

    def __init__(self, document: Document, findings: Findings, budget: Budget) -> None:
        self._budget = budget
        self.handlers: list[str] = []
        self._document = document
        self._findings = findings
        self._owners: dict[str, BpmnElement] = {}

    def read(self, scope: ProcessScope) -> Level:
        elements = self._identified(scope)
        handlers = self._handlers(scope, elements)
        nodes: dict[str, BpmnElement] = {}
        event_sub_processes = []
        for element in elements:
            kind = element.kind
            if element.id in handlers:
                self._leave_out_handler(element)
            elif kind in SUB_PROCESSES and element.flag("triggeredByEvent", default=False):
                event_sub_processes.append(element)
                self._check_unconnected(element, scope)
            elif kind != "boundaryEvent":
                nodes[element.id] = element
        boundary = self._boundary(scope, elements, nodes, handlers)
        level = Level(
            scope=scope,
            nodes=nodes,
            boundary=boundary,
            event_sub_processes=tuple(event_sub_processes),
            links=self._links(nodes),
        )
        self._check_borders(level)
        self._note_loose(level)
        return level

    def _note_loose(self, level: Level) -> None:
        """Add a notice for each activity without flows, unless a start event is drawn or no node has flows."""
        kinds = {element.kind for element in level.nodes.values()}
        if "startEvent" in kinds or level.scope.element.kind == "adHocSubProcess":
            return
        flows = level.scope.flows
        loose = [identity for identity in level.nodes if not flows.leaving(identity) and not flows.arriving(identity)]
        if len(loose) == len(level.nodes):
            return
        for identity in loose:
            if level.nodes[identity].is_activity and identity not in level.boundary:
                described = level.nodes[identity].described
                message = f"no flow leads to or from {described}; it happens beside the rest in every trace: connect it"
                self._findings.note(identity, message)

    def _identified(self, scope: ProcessScope) -> list[BpmnElement]:
        """Return the flow nodes of a scope, and give each a unique id.

        Other elements are refused, left out with a notice, or skipped if they have no influence.
        """
        elements = []
        for number, element in enumerate(scope.element):
            kind = element.kind
            self._budget.work(element.id)
            if element.is_flow_node:
                self._identify(element, scope, number)
                elements.append(element)
            elif kind in _CHOREOGRAPHY:
                self._findings.refuse(
                    element.id, f"<{kind}> is part of a choreography, which is not read; draw it as a task"
                )
            elif kind and kind not in WITHOUT_MEANING and not kind.endswith(EVENT_DEFINITION):
                self._findings.note(element.id or scope.element.id, f"<{kind}> is not known and is left out")
        return elements

    def _identify(self, element: BpmnElement, scope: ProcessScope, number: int) -> None:
        identity = element.id
        if not identity:
            described = element.described
            element.set("id", f"{scope.element.id}#{number}")
            message = f'{described} has no id, so that no flow can name it; {element.id} is made: add id="..."'
            self._findings.note(scope.element.id, message)
        elif self._owners.setdefault(scope.prefix + identity, element) is not element:
            if scope.flows.leaving(identity) or scope.flows.arriving(identity):
                other = self._owners[scope.prefix + identity].described
                self._findings.refuse(
                    identity, f"{element.described} and {other} have one id, and flows name it; give each its own"
                )
            element.set("id", f"{identity}#{number}")
            self._findings.note(identity, f"this id is used twice; {element.described} is distinguished")

    def _handlers(self, scope: ProcessScope, elements: Iterable[BpmnElement]) -> set[str]:
        """Return the ids of the nodes that serve only compensation.

        Such a node is marked for compensation or associated with a compensation event, and has no flows.
        """
        triggers = {
            element.id
            for element in elements
            if element.kind == "boundaryEvent"
            and any(trigger.kind == "compensate" for trigger in triggers_of(element, self._document))
        }
        tied = {
            association.get("targetRef", "").strip()
            for association in scope.element.children("association")
            if association.get("sourceRef", "").strip() in triggers
        }
        handlers = set(triggers)
        for element in elements:
            identity = element.id
            is_marked = element.flag("isForCompensation", default=False)
            if not element.is_activity or not (is_marked or identity in tied):
                is_handler = self._starts_with_compensation(element)
            else:
                is_handler = not scope.flows.arriving(identity) and not scope.flows.leaving(identity)
                if is_marked and not is_handler:
                    self._findings.note(identity, f"{element.described} is for compensation, but flows lead through it")
            if is_handler:
                handlers.add(identity)
        return handlers

    def _starts_with_compensation(self, element: BpmnElement) -> bool:
        return element.flag("triggeredByEvent", default=False) and any(
            trigger.kind == "compensate"
            for start in element.children("startEvent")
            for trigger in triggers_of(start, self._document)
        )

    def _leave_out_handler(self, element: BpmnElement) -> None:
        if element.kind != "boundaryEvent":
            self.handlers.append(element.id)
            self._findings.note(element.id, f"{element.described} is for compensation only and is left out")

    def _check_unconnected(self, element: BpmnElement, scope: ProcessScope) -> None:
        if scope.flows.leaving(element.id) or scope.flows.arriving(element.id):
            self._findings.refuse(
                element.id, f"{element.described} starts by an event; remove the flows to and from it"
            )

    def _boundary(
        self, scope: ProcessScope, elements: Iterable[BpmnElement], nodes: dict[str, BpmnElement], handlers: set[str]
    ) -> dict[str, list[BpmnElement]]:
        boundary: dict[str, list[BpmnElement]] = defaultdict(list)
        for event in elements:
            if event.kind != "boundaryEvent" or event.id in handlers:
                continue
            reference = event.get("attachedToRef", "")
            host = resolve(reference, nodes)
            if resolve(reference, handlers) is not None:
                self._findings.note(event.id, f"{event.described} is left out with the activity that it is on")
            elif host is None or not nodes[host].is_activity:
                self._findings.refuse(
                    event.id,
                    f"{event.described} is on {reference!r} (attachedToRef), which is not an activity of the same "
                    f"level; attach it to one",
                )
            else:
                boundary[host].append(event)
                if scope.flows.arriving(event.id):
                    self._findings.refuse(
                        event.id, f"a flow leads to {event.described}; remove it, or use an intermediate event"
                    )
        return dict(boundary)

    def _links(self, nodes: dict[str, BpmnElement]) -> dict[str, list[str]]:
        caught: dict[str, list[str]] = defaultdict(list)
        for identity, element in nodes.items():
            link = link_of(element, self._document) if element.kind == "intermediateCatchEvent" else None
            if link is not None:
                caught[link].append(identity)
        return dict(caught)

    def _check_borders(self, level: Level) -> None:
        for identity in (*level.nodes, *(event.id for events in level.boundary.values() for event in events)):
            for flow in level.scope.flows.leaving(identity):
                if flow.target not in level.nodes:
                    self._findings.refuse(
                        flow.id,
                        f"this flow leads from {flow.source} to {flow.target}, which is on another level, on the "
                        f"border of an activity or for compensation; a flow stays within its process or sub-process",
                    )
