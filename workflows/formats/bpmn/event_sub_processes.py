"""Reads event sub-processes, which interrupt their level or run concurrently with it.

A level with event sub-processes becomes a block with an exit to each of them. Non-interrupting ones belong to an inner
block. Interrupting ones belong to an outer block, so that they also stop the non-interrupting ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workflows.formats.bpmn.draft import Budget, GraphDraft, Port
from workflows.formats.bpmn.elements import BpmnElement
from workflows.formats.findings import Findings
from workflows.nets.graph import Block, Exit, FlowGraph, Node, NodeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """An event sub-process after reading. ``exits`` has one exit for each start event, and ``node`` has the content."""

    exits: tuple[Exit, ...]
    node: Node


def watch(
    graph: FlowGraph, watchers: Sequence[Watcher], role: str, budget: Budget, findings: Findings, ending: str = ""
) -> FlowGraph:
    """Put a graph into a block whose exits lead to the event sub-processes ``watchers``.

    The ``watchers`` are all interrupting or all non-interrupting. If ``ending`` is not empty, the block also has an
    exit of this id, which ends the graph and its event sub-processes. Without ``watchers`` and ``ending`` the graph is
    returned unchanged. ``role`` is part of the ids of generated nodes.
    """
    if not watchers and not ending:
        return graph
    draft = GraphDraft(graph.id, graph.name, budget)
    start = draft.add(Node(id=f"{graph.id}#{role}-start", kind=NodeKind.START, described=f"start of {graph.id}"))
    exits = [exit_ for watcher in watchers for exit_ in watcher.exits]
    if ending:
        exits.append(Exit(id=ending, name="terminate", is_thrown=True))
    block = Block(graph=replace(graph, id=f"{graph.id}#{role}"), exits=tuple(exits))
    described = f"content of {graph.id}"
    node = draft.add(Node(id=f"{graph.id}#{role}", kind=NodeKind.BLOCK, block=block, described=described))
    draft.connect(Port(node=start), node.id)
    for watcher in watchers:
        draft.add(watcher.node)
        for exit_ in watcher.exits:
            draft.connect(Port(node=node, exit=exit_.id), watcher.node.id)
    return draft.finish(findings)


def interrupts(element: BpmnElement, findings: Findings) -> bool:
    """Check whether an event sub-process interrupts the level that contains it.

    Refuse an event sub-process without start events, or with both interrupting and other start events.
    """
    starts = [
        start.flag("isInterrupting", default=True) or start.child("errorEventDefinition") is not None
        for start in element.children("startEvent")
    ]
    if not starts:
        findings.refuse(element.id, f"{element.described} has no start event; add one that says when it happens")
    if len(set(starts)) > 1:
        findings.refuse(
            element.id,
            f"{element.described} has start events that interrupt and others that do not; draw two event sub-processes",
        )
    return all(starts)
