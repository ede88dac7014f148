"""Levels: the direct elements of a process or sub-process, sorted by how they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from constraints import overlapping
from workflows.formats.bpmn.document import EVENT_DEFINITION, Document, resolve
from workflows.formats.bpmn.draft import Budget
from workflows.formats.bpmn.elements import (
    SUB_PROCESSES,
    children,
    describe,
    flag,
    id_of,
    is_activity,
    is_flow_node,
    is_without_meaning,
    kind_of,
)
from workflows.formats.bpmn.flows import FlowTable
from workflows.formats.bpmn.triggers import Catchers, link_of, triggers_of
from workflows.formats.findings import Findings

_CHOREOGRAPHY = frozenset({"choreographyTask", "subChoreography", "callChoreography"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessScope:
    """A process or sub-process with its surroundings.

    Attributes:
        prefix: Prefix of all ids in the scope: the path of the calls that lead to it.
        catchers: The events around it that catch what is thrown in it.
        calls: Process -> the call activity by which it was left, in words; the last process is being read.
        terminator: The exit that ends it with its event sub-processes; empty if it has none.
    """

    element: Element
    identity: str
    prefix: str
    flows: FlowTable
    catchers: Catchers
    calls: tuple[tuple[str, str], ...] = ()
    depth: int = 0
    terminator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The elements of a scope.

    Attributes:
        nodes: Elements on the path of tokens, by id; without boundary events and event sub-processes.
        boundary: Id of an activity -> its boundary events.
        links: Name of a link -> the events that catch it.
    """

    scope: ProcessScope
    nodes: dict[str, Element]
    boundary: dict[str, list[Element]]
    event_sub_processes: tuple[Element, ...] = ()
    links: Mapping[str, list[str]]

    def fragments(self) -> tuple[Level, ...]:
        """The parts that no flow connects, each by itself, in the order of the file."""
        hosts = {id_of(event): host for host, events in self.boundary.items() for event in events}
        touching: dict[str, set[str]] = {own: {own} for own in self.nodes}
        for own in (*self.nodes, *hosts):
            targets = {flow.target for flow in self.scope.flows.leaving(own)}
            touching[hosts.get(own, own)] |= targets.intersection(self.nodes)
        return tuple(
            replace(self, nodes={own: self.nodes[own] for own in part}, event_sub_processes=())
            for part in overlapping(touching)
        )


class LevelReader:
    """Sorts the elements of scopes, and repairs small faults; left-out compensation handlers are in ``handlers``."""

    def __init__(self, document: Document, findings: Findings, budget: Budget) -> None:
        self._budget = budget
        self.handlers: list[str] = []
        self._document = document
        self._findings = findings
        self._owners: dict[str, Element] = {}

    def read(self, scope: ProcessScope) -> Level:
        elements = self._identified(scope)
        handlers = self._handlers(scope, elements)
        nodes: dict[str, Element] = {}
        event_sub_processes = []
        for element in elements:
            kind = kind_of(element)
            if id_of(element) in handlers:
                self._leave_out_handler(element)
            elif kind in SUB_PROCESSES and flag(element, "triggeredByEvent", default=False):
                event_sub_processes.append(element)
                self._check_unconnected(element, scope)
            elif kind != "boundaryEvent":
                nodes[id_of(element)] = element
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
        """Add notices for activities without flows, if other nodes have flows and no start event is drawn."""
        kinds = {kind_of(element) for element in level.nodes.values()}
        if "startEvent" in kinds or kind_of(level.scope.element) == "adHocSubProcess":
            return
        flows = level.scope.flows
        loose = [own for own in level.nodes if not flows.leaving(own) and not flows.arriving(own)]
        if len(loose) == len(level.nodes):
            return
        for own in loose:
            if is_activity(kind_of(level.nodes[own])) and own not in level.boundary:
                described = describe(level.nodes[own])
                message = f"no flow leads to or from {described}; it happens beside the rest in every trace: connect it"
                self._findings.note(own, message)

    def _identified(self, scope: ProcessScope) -> list[Element]:
        """The flow nodes, each with a unique id."""
        elements = []
        for number, element in enumerate(scope.element):
            kind = kind_of(element)
            self._budget.work(id_of(element))
            if is_flow_node(kind):
                self._identify(element, scope, number)
                elements.append(element)
            elif kind in _CHOREOGRAPHY:
                self._findings.refuse(
                    id_of(element), f"<{kind}> is part of a choreography, which is not read; draw it as a task"
                )
            elif kind and not is_without_meaning(kind) and not kind.endswith(EVENT_DEFINITION):
                self._findings.note(id_of(element) or id_of(scope.element), f"<{kind}> is not known and is left out")
        return elements

    def _identify(self, element: Element, scope: ProcessScope, number: int) -> None:
        own = id_of(element)
        if not own:
            described = describe(element)
            element.set("id", f"{id_of(scope.element)}#{number}")
            message = f'{described} has no id, so that no flow can name it; {id_of(element)} is made: add id="..."'
            self._findings.note(id_of(scope.element), message)
        elif self._owners.setdefault(scope.prefix + own, element) is not element:
            if scope.flows.leaving(own) or scope.flows.arriving(own):
                other = describe(self._owners[scope.prefix + own])
                self._findings.refuse(
                    own, f"{describe(element)} and {other} have one id, and flows name it; give each its own"
                )
            element.set("id", f"{own}#{number}")
            self._findings.note(own, f"this id is used twice; {describe(element)} is distinguished")

    def _handlers(self, scope: ProcessScope, elements: Iterable[Element]) -> set[str]:
        """The nodes for compensation only: marked as such, or associated with a compensation event."""
        triggers = {
            id_of(element)
            for element in elements
            if kind_of(element) == "boundaryEvent"
            and any(trigger.kind == "compensate" for trigger in triggers_of(element, self._document))
        }
        tied = {
            association.get("targetRef", "").strip()
            for association in children(scope.element, "association")
            if association.get("sourceRef", "").strip() in triggers
        }
        handlers = set(triggers)
        for element in elements:
            own = id_of(element)
            is_marked = flag(element, "isForCompensation", default=False)
            if not is_activity(kind_of(element)) or not (is_marked or own in tied):
                is_handler = self._starts_with_compensation(element)
            else:
                is_handler = not scope.flows.arriving(own) and not scope.flows.leaving(own)
                if is_marked and not is_handler:
                    self._findings.note(own, f"{describe(element)} is for compensation, but flows lead through it")
            if is_handler:
                handlers.add(own)
        return handlers

    def _starts_with_compensation(self, element: Element) -> bool:
        return flag(element, "triggeredByEvent", default=False) and any(
            trigger.kind == "compensate"
            for start in children(element, "startEvent")
            for trigger in triggers_of(start, self._document)
        )

    def _leave_out_handler(self, element: Element) -> None:
        if kind_of(element) != "boundaryEvent":
            self.handlers.append(id_of(element))
            self._findings.note(id_of(element), f"{describe(element)} is for compensation only and is left out")

    def _check_unconnected(self, element: Element, scope: ProcessScope) -> None:
        if scope.flows.leaving(id_of(element)) or scope.flows.arriving(id_of(element)):
            self._findings.refuse(
                id_of(element), f"{describe(element)} starts by an event; remove the flows to and from it"
            )

    def _boundary(
        self, scope: ProcessScope, elements: Iterable[Element], nodes: dict[str, Element], handlers: set[str]
    ) -> dict[str, list[Element]]:
        boundary: dict[str, list[Element]] = defaultdict(list)
        for event in elements:
            if kind_of(event) != "boundaryEvent" or id_of(event) in handlers:
                continue
            reference = event.get("attachedToRef", "")
            host = resolve(reference, nodes)
            if resolve(reference, handlers) is not None:
                self._findings.note(id_of(event), f"{describe(event)} is left out with the activity that it is on")
            elif host is None or not is_activity(kind_of(nodes[host])):
                self._findings.refuse(
                    id_of(event),
                    f"{describe(event)} is on {reference!r} (attachedToRef), which is not an activity of the same "
                    f"level; attach it to one",
                )
            else:
                boundary[host].append(event)
                if scope.flows.arriving(id_of(event)):
                    self._findings.refuse(
                        id_of(event), f"a flow leads to {describe(event)}; remove it, or use an intermediate event"
                    )
        return dict(boundary)

    def _links(self, nodes: dict[str, Element]) -> dict[str, list[str]]:
        caught: dict[str, list[str]] = defaultdict(list)
        for own, element in nodes.items():
            link = link_of(element, self._document) if kind_of(element) == "intermediateCatchEvent" else None
            if link is not None:
                caught[link].append(own)
        return dict(caught)

    def _check_borders(self, level: Level) -> None:
        """Check that flows stay in their level and lead to flow nodes."""
        for own in (*level.nodes, *(id_of(event) for events in level.boundary.values() for event in events)):
            for flow in level.scope.flows.leaving(own):
                if flow.target not in level.nodes:
                    self._findings.refuse(
                        flow.id,
                        f"this flow leads from {flow.source} to {flow.target}, which is on another level, on the "
                        f"border of an activity or for compensation; a flow stays within its process or sub-process",
                    )
