"""Converts the events that tokens pass: start, end and intermediate events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workflows.formats.bpmn.activities import Labels
from workflows.formats.bpmn.document import Document
from workflows.formats.bpmn.draft import GraphDraft, Port
from workflows.formats.bpmn.elements import BpmnElement
from workflows.formats.bpmn.gateways import lead_on
from workflows.formats.bpmn.levels import Level
from workflows.formats.bpmn.triggers import THROWN, Trigger, first_of, link_of, triggers_of
from workflows.formats.findings import Findings
from workflows.nets.graph import Node, NodeKind


class EventReader:
    """Adds the start, end and intermediate events of BPMN levels to flow graphs.

    Attributes:
        thrown: The exits to which some event throws.
        labels: The types that intermediate events emit, by id of the event. Only the process itself is included,
            without called processes.
    """

    def __init__(self, document: Document, labels: Labels, findings: Findings) -> None:
        self.thrown: set[str] = set()
        self.labels: dict[str, str] = {}
        self._document = document
        self._labels = labels
        self._findings = findings
        self._compensations: dict[str, str] = {}

    def check_compensation(self, handlers: Sequence[str]) -> None:
        """Refuse events that start compensation if the process has compensation ``handlers``.

        The handlers would then run, but they are not read.
        """
        for identity, described in self._compensations.items() if handlers else ():
            self._findings.refuse(
                identity,
                f"{described} starts compensation, here by {', '.join(handlers[:5])}, which is not read; draw what "
                f"happens then with flows, or remove it",
            )

    def is_led_to(self, level: Level, identity: str) -> bool:
        if level.scope.flows.arriving(identity):
            return True
        element = level.nodes[identity]
        return element.kind == "intermediateCatchEvent" and link_of(element, self._document) is not None

    def add_event(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        kind = element.kind
        if kind == "startEvent":
            self._add_start(draft, level, element)
        elif kind == "endEvent":
            self._add_end(draft, level, element)
        elif kind in ("intermediateThrowEvent", "implicitThrowEvent"):
            self._add_throw(draft, level, element)
        else:
            self._add_catch(draft, level, element)

    def _add_catch(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        """Add an intermediate event. With a name but no mapping, it becomes a choice: it emits its name or nothing."""
        name = element.name
        if self._labels.is_mapped(element) or not name or link_of(element, self._document) is not None:
            self._pass(draft, level, element, self._mapped_node(level, element))
            return
        self._note_label(level, element, name)
        self._findings.note(
            element.id,
            f"{element.described} may emit {name!r} or not; a mapping says that it always does "
            f"({name}: EVENT_TYPE) or never ({name}: null)",
        )
        choice = draft.add(level.scope.node(element, NodeKind.EXCLUSIVE))
        caught = Node(
            id=f"{choice.id}#event", kind=NodeKind.ACTIVITY, name=name, label=name, described=choice.described
        )
        after = Node(id=f"{choice.id}#after", kind=NodeKind.SILENT, described=choice.described)
        draft.connect(Port(node=choice), draft.add(caught).id)
        draft.connect(Port(node=choice), after.id)
        draft.connect(Port(node=caught), after.id)
        self._pass(draft, level, element, after)

    def _mapped_node(self, level: Level, element: BpmnElement) -> Node:
        label = self._labels.mapped_label(element)
        if label is None:
            return level.scope.node(element, NodeKind.SILENT)
        self._note_label(level, element, label)
        return replace(level.scope.node(element, NodeKind.ACTIVITY), label=label)

    def _note_label(self, level: Level, element: BpmnElement, label: str) -> None:
        if not level.scope.prefix:
            self.labels[element.id] = label

    def _add_start(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        start = level.scope.node(element, NodeKind.START)
        if not level.scope.flows.arriving(element.id):
            self._pass(draft, level, element, start)
            return
        self._findings.note(element.id, f"flows lead to {element.described}; it is also passed through by them")
        start_node = draft.add(Node(id=f"{start.id}#start", kind=NodeKind.START, described=start.described))
        draft.connect(Port(node=start_node), start.id)
        self._pass(draft, level, element, level.scope.node(element, NodeKind.SILENT))

    def _add_end(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        identity = element.id
        if level.scope.flows.leaving(identity):
            self._findings.refuse(
                identity, f"a flow leaves {element.described}; none can, use an intermediate event or remove the flow"
            )
        triggers = triggers_of(element, self._document)
        self._note_compensation(element, triggers)
        if first_of(triggers, ("terminate",)) is not None:
            self._add_terminate(draft, level, element)
        elif not self._throw(draft, level, element, triggers):
            draft.add(level.scope.node(element, NodeKind.END))

    def _add_terminate(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        terminator = level.scope.terminator
        if terminator:
            self.thrown.add(terminator)
            draft.add(replace(level.scope.node(element, NodeKind.THROW), throws=terminator))
        else:
            draft.add(level.scope.node(element, NodeKind.TERMINATE))

    def _add_throw(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        triggers = triggers_of(element, self._document)
        self._note_compensation(element, triggers)
        if first_of(triggers, ("link",)) is not None:
            self._add_link(draft, level, element)
        elif not self._throw(draft, level, element, triggers):
            self._pass(draft, level, element, self._mapped_node(level, element))

    def _add_link(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        identity, prefix = element.id, level.scope.prefix
        node = draft.add(level.scope.node(element, NodeKind.SILENT))
        link = link_of(element, self._document) or ""
        targets = level.links.get(link, [])
        if level.scope.flows.leaving(identity):
            self._findings.refuse(identity, f"a flow leaves {element.described}; a link continues where it is caught")
        elif len(targets) != 1:
            self._findings.refuse(
                identity,
                f"{len(targets)} events of the same level catch link {link!r} of {element.described}; exactly one must",
            )
        else:
            draft.connect(Port(node=node), prefix + targets[0], f"{node.id}#link")

    def _throw(self, draft: GraphDraft, level: Level, element: BpmnElement, triggers: Sequence[Trigger]) -> bool:
        """Add an event that throws a trigger to a surrounding level. Return whether some event there catches it."""
        trigger = first_of(triggers, THROWN)
        if trigger is None:
            return False
        exits = level.scope.catchers.find(trigger)
        self.thrown.update(exits)
        if len(exits) == 1:
            self._pass(draft, level, element, replace(level.scope.node(element, NodeKind.THROW), throws=exits[0]))
        elif exits:
            self._throw_to_any(draft, level, element, exits)
        elif trigger.kind == "cancel":
            self._findings.refuse(element.id, f"{element.described} needs a cancel event on a transaction around it")
        elif trigger.kind == "error":
            self._findings.note(element.id, f"nothing catches the error of {element.described}; it is a plain end")
        return bool(exits)

    def _throw_to_any(self, draft: GraphDraft, level: Level, element: BpmnElement, exits: Sequence[str]) -> None:
        choice = draft.add(level.scope.node(element, NodeKind.EXCLUSIVE))
        after = None
        if level.scope.flows.leaving(element.id):
            after = Node(id=f"{choice.id}#thrown", kind=NodeKind.SILENT, described=choice.described)
            self._pass(draft, level, element, after)
        for number, throws in enumerate(exits):
            throw = Node(
                id=f"{choice.id}#throw{number}", kind=NodeKind.THROW, throws=throws, described=choice.described
            )
            draft.connect(Port(node=choice), draft.add(throw).id)
            if after is not None:
                draft.connect(Port(node=throw), after.id)

    def _note_compensation(self, element: BpmnElement, triggers: Sequence[Trigger]) -> None:
        if first_of(triggers, ("compensate", "cancel")) is not None:
            self._compensations[element.id] = element.described

    def _pass(self, draft: GraphDraft, level: Level, element: BpmnElement, node: Node) -> None:
        scope = level.scope
        lead_on(draft, Port(node=draft.add(node)), scope.flows.leaving(element.id), "", scope.prefix)
