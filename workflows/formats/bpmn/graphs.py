"""Converts the levels of a process to flow graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from workflows.formats.bpmn.activities import Labels, check_quantities, repeat_of
from workflows.formats.bpmn.document import Document
from workflows.formats.bpmn.draft import Budget, GraphDraft, Port
from workflows.formats.bpmn.elements import CALL, GATEWAYS, SUB_PROCESSES, BpmnElement
from workflows.formats.bpmn.event_nodes import EventReader
from workflows.formats.bpmn.event_sub_processes import Watcher, interrupts, watch
from workflows.formats.bpmn.flows import FlowTable
from workflows.formats.bpmn.gateways import KIND_OF_GATEWAY, lead_on, lead_on_from_gateway
from workflows.formats.bpmn.levels import Level, LevelReader, ProcessScope
from workflows.formats.bpmn.triggers import Catchers, catchers_of, exit_of
from workflows.formats.findings import Findings
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat

MOST_LEVELS = 40


_Content: TypeAlias = FlowGraph | str | None  # content of an activity: a graph, an event type, or None if silent


class GraphReader:
    """Reads a BPMN process, its sub-processes, and all processes that it calls as flow graphs.

    ``events`` has, by id, the event types that activities and intermediate events of the process itself emit.
    """

    def __init__(self, document: Document, labels: Labels, findings: Findings) -> None:
        self.events: dict[str, str] = {}
        self._document = document
        self._labels = labels
        self._findings = findings
        self._budget = Budget(findings)
        self._levels = LevelReader(document, findings, self._budget)
        self._events = EventReader(document, labels, findings)
        self._tables: dict[int, FlowTable] = {}

    def read_process(self, process: BpmnElement) -> FlowGraph:
        """Return the flow graph of a process.

        Problems are added to the findings, and the graph is valid only without any.
        """
        graph = self._read_scope(
            ProcessScope(
                element=process,
                identity=process.id or "process",
                prefix="",
                flows=self._flows_of(process),
                catchers=Catchers(),
                calls=((process.id, ""),),
            )
        )
        self._events.check_compensation(self._levels.handlers)
        self.events |= self._events.labels
        return replace(graph, name=self._document.title_of(process))

    def _flows_of(self, process: BpmnElement) -> FlowTable:
        if id(process) not in self._tables:
            self._tables[id(process)] = FlowTable(process, self._document, self._findings)
        return self._tables[id(process)]

    # Scopes

    def _read_scope(self, scope: ProcessScope) -> FlowGraph:
        if scope.depth > MOST_LEVELS:
            raise self._findings.refusal(
                scope.element.id, f"sub-processes and calls are nested more than {MOST_LEVELS} deep"
            )
        level = self._levels.read(scope)
        cutting = [part for part in level.event_sub_processes if interrupts(part, self._findings)]
        others = [part for part in level.event_sub_processes if part not in cutting]
        around = self._within(scope, cutting)
        terminator = f"{scope.identity}#terminate" if level.event_sub_processes else ""
        inside = replace(self._within(around, others), terminator=terminator)
        level = replace(level, scope=inside)
        is_ad_hoc = scope.element.kind == "adHocSubProcess"
        graph = self._read_ad_hoc(level) if is_ad_hoc else self._read_level(level, scope.identity)
        beside = [self._read_watcher(part, around) for part in others]
        graph = watch(graph, beside, "watched", self._budget, self._findings)
        instead = [self._read_watcher(part, scope) for part in cutting]
        ending = terminator if terminator in self._events.thrown else ""
        return watch(graph, instead, "interrupted", self._budget, self._findings, ending)

    def _within(self, scope: ProcessScope, event_sub_processes: list[BpmnElement]) -> ProcessScope:
        starts = [start for part in event_sub_processes for start in part.children("startEvent")]
        caught = catchers_of(starts, scope.prefix, self._document)
        return replace(scope, catchers=Catchers(caught, scope.catchers)) if caught else scope

    def _read_watcher(self, element: BpmnElement, scope: ProcessScope) -> Watcher:
        exits = tuple(
            exit_of(start, scope.prefix, self._document, self._events.thrown)
            for start in element.children("startEvent")
        )
        self._note_once(exits, scope.element)
        graph = self._read_scope(self._below(element, scope))
        return Watcher(exits=exits, node=replace(scope.node(element, NodeKind.BLOCK), block=Block(graph=graph)))

    def _below(self, element: BpmnElement, scope: ProcessScope) -> ProcessScope:
        return replace(scope, element=element, identity=scope.prefix + element.id, depth=scope.depth + 1, terminator="")

    def _read_level(self, level: Level, identity: str) -> FlowGraph:
        draft = GraphDraft(identity, level.scope.element.name, self._budget)
        for element in level.nodes.values():
            kind = element.kind
            if element.is_activity:
                self._add_activity(draft, level, element)
            elif kind in GATEWAYS:
                self._add_gateway(draft, level, element)
            else:
                self._events.add_event(draft, level, element)
        self._start(draft, level)
        return draft.finish(self._findings)

    def _start(self, draft: GraphDraft, level: Level) -> None:
        """Start at start events and instantiating nodes or, without any, at all nodes without incoming flows."""
        prefix = level.scope.prefix
        roots = [element for identity, element in level.nodes.items() if not self._events.is_led_to(level, identity)]
        creating = [element for element in roots if element.flag("instantiate", default=False)]
        for element in creating:
            start = Node(id=f"{prefix}{element.id}#start", kind=NodeKind.START, described=element.described)
            draft.connect(Port(node=draft.add(start)), prefix + element.id)
        if creating or any(element.kind == "startEvent" for element in level.nodes.values()):
            return
        if not roots:
            self._findings.refuse(
                level.scope.element.id,
                f"nothing starts {level.scope.element.described}: flows lead to all of its elements; add a start event",
            )
        start = Node(id=f"{draft.identity}#start", kind=NodeKind.START, described=f"start of {draft.identity}")
        port = Port(node=draft.add(start))
        if len(roots) > 1:
            split = Node(id=f"{draft.identity}#all", kind=NodeKind.PARALLEL, described=start.described)
            draft.connect(port, draft.add(split).id)
            port = Port(node=split)
        for element in roots:
            draft.connect(port, prefix + element.id)

    def _read_ad_hoc(self, level: Level) -> FlowGraph:
        """Return the graph of an ad-hoc sub-process: its fragments occur any number of times, in any order.

        The fragments run concurrently, unless the sub-process is sequential or each fragment has at most one event.
        """
        scope = level.scope
        self._findings.note(
            scope.element.id, f"{scope.element.described}: its activities come in any order, any number of times"
        )
        identity = scope.identity
        choice = GraphDraft(f"{identity}#any", "", self._budget)
        start = choice.add(Node(id=f"{identity}#any-start", kind=NodeKind.START, described=scope.element.described))
        gateway = choice.add(Node(id=f"{identity}#any", kind=NodeKind.EXCLUSIVE, described=scope.element.described))
        choice.connect(Port(node=start), gateway.id)
        is_single = True
        for fragment in level.fragments():
            first = next(iter(fragment.nodes.values()))
            identifier = f"{scope.prefix}{first.id}#fragment"
            graph = self._read_level(fragment, identifier)
            is_single = is_single and sum(node.kind in _WITH_CONTENT for node in graph.nodes) <= 1
            is_single = is_single and all(node.block is None or _is_single(node.block) for node in graph.nodes)
            block = Block(graph=graph)
            node = Node(id=identifier, kind=NodeKind.BLOCK, block=block, described=first.described)
            choice.connect(Port(node=gateway), choice.add(node).id)
        is_sequence = scope.element.get("ordering", "Parallel") == "Sequential"
        repeat = Repeat(least=0, is_parallel=not is_sequence and not is_single)
        block = Block(graph=choice.finish(self._findings), repeat=repeat)
        draft = GraphDraft(identity, scope.element.name, self._budget)
        node = Node(id=f"{identity}#ad-hoc", kind=NodeKind.BLOCK, block=block, described=scope.element.described)
        start = draft.add(Node(id=f"{identity}#start", kind=NodeKind.START, described=scope.element.described))
        draft.connect(Port(node=start), draft.add(node).id)
        return draft.finish(self._findings)

    # Gateways and activities

    def _add_gateway(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        kind = element.kind
        if kind not in KIND_OF_GATEWAY:
            self._findings.refuse(
                element.id,
                f"{element.described}: complex gateways are not read; use exclusive, inclusive or parallel ones",
            )
            return
        prefix, flows = level.scope.prefix, level.scope.flows
        leaving = flows.leaving(element.id)
        is_all = element.get("eventGatewayType") == "Parallel" and element.flag("instantiate", default=False)
        gateway = level.scope.node(element, NodeKind.PARALLEL if is_all else KIND_OF_GATEWAY[kind])
        if not leaving:
            self._findings.note(element.id, f"no flow leaves {element.described}; it is an end")
        lead_on_from_gateway(draft, draft.add(gateway), leaving, element.get("default", ""), prefix)

    def _add_activity(self, draft: GraphDraft, level: Level, element: BpmnElement) -> None:
        scope, identity = level.scope, element.id
        boundary = level.boundary.get(identity, [])
        check_quantities(element, self._findings)
        catchers = catchers_of(boundary, scope.prefix, self._document)
        inner = replace(scope, catchers=Catchers(catchers, scope.catchers)) if catchers else scope
        content = self._read_content(element, inner)
        if isinstance(content, str) and not scope.prefix:
            self.events[identity] = content
        exits = tuple(exit_of(event, scope.prefix, self._document, self._events.thrown) for event in boundary)
        self._note_once(exits, element)
        repeat = repeat_of(element, not isinstance(content, FlowGraph), self._labels.least_instances, self._findings)
        node = draft.add(_activity_node(scope, element, content, exits, repeat))
        lead_on(draft, Port(node=node), scope.flows.leaving(identity), element.get("default", ""), scope.prefix)
        for event in boundary:
            port = Port(node=node, exit=scope.prefix + event.id)
            lead_on(draft, port, scope.flows.leaving(event.id), "", scope.prefix)

    def _read_content(self, element: BpmnElement, scope: ProcessScope) -> _Content:
        kind = element.kind
        if kind == CALL:
            called = self._document.find(element.get("calledElement", ""))
            if called is not None and called.kind == "process":
                return self._call(element, called, scope)
            if not element.has_content:
                self._note_outside(element)
                return self._labels.label_of(element)
        elif kind not in SUB_PROCESSES:
            return self._labels.label_of(element)
        if element.has_content:
            return self._read_scope(self._below(element, scope))
        if self._labels.is_mapped(element):
            return self._labels.label_of(element)
        self._findings.note(
            element.id, f"{element.described} has no content in the file; it is silent, unless a mapping names it"
        )
        return None

    def _note_outside(self, element: BpmnElement) -> None:
        target = element.get("calledElement", "").strip()
        if target:
            message = f"{element.described} calls {target!r}, which is not a process of this file; it is read as a task"
            self._findings.note(element.id, message)

    def _call(self, element: BpmnElement, called: BpmnElement, scope: ProcessScope) -> _Content:
        target = called.id
        if not called.has_content:
            self._findings.note(
                element.id, f"{element.described} calls process {target!r}, which is empty; it is read as a task"
            )
            return self._labels.label_of(element)
        path = [process for process, _ in scope.calls]
        if target in path:
            start = path.index(target)
            steps = [*scope.calls[start + 1 :], (target, element.described)]
            cycle = target + "".join(f" -> {process} (by {by})" for process, by in steps)
            self._findings.refuse(element.id, f"processes call each other in a cycle, which has no end: {cycle}")
            return None
        prefix = f"{scope.prefix}{element.id}/"
        inner = replace(
            scope,
            element=called,
            identity=prefix + target,
            prefix=prefix,
            flows=self._flows_of(called),
            calls=(*scope.calls, (target, element.described)),
            depth=scope.depth + 1,
            terminator="",
        )
        return self._read_scope(inner)

    def _note_once(self, exits: tuple[Exit, ...], element: BpmnElement) -> None:
        for exit_ in exits:
            if not exit_.is_interrupting and not exit_.is_thrown:
                identity = exit_.id.rpartition("/")[2]
                self._findings.note(identity, f"this event happens at most once whenever {element.described} is active")


_WITH_CONTENT = frozenset({NodeKind.ACTIVITY, NodeKind.BLOCK})


def _is_single(block: Block) -> bool:
    return not block.exits and all(node.kind in (NodeKind.START, NodeKind.ACTIVITY) for node in block.graph.nodes)


def _activity_node(
    scope: ProcessScope, element: BpmnElement, content: _Content, exits: tuple[Exit, ...], repeat: Repeat | None
) -> Node:
    if isinstance(content, FlowGraph):
        graph = content
    else:
        node = replace(scope.node(element, NodeKind.SILENT if content is None else NodeKind.ACTIVITY), label=content)
        if not exits and repeat is None:
            return node
        start = Node(id=f"{node.id}#start", kind=NodeKind.START, described=node.described)
        task = replace(node, id=f"{node.id}#task")
        flow = Flow(id=f"{node.id}#flow", source=start.id, target=task.id)
        graph = FlowGraph(id=node.id, name=node.name, nodes=(start, task), flows=(flow,))
    return replace(scope.node(element, NodeKind.BLOCK), block=Block(graph=graph, exits=exits, repeat=repeat))
