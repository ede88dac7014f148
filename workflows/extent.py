"""How much a model says, before anything is made of it."""

from __future__ import annotations

from workflows.model import WorkflowModel
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.tree import activity_names


def event_types_of(model: WorkflowModel) -> frozenset[str]:
    """The types of events that a model can emit."""
    source = model.source
    if isinstance(source, WorkflowNet):
        return source.labels
    if isinstance(source, FlowGraph):
        return _of_graph(source)
    return frozenset(activity_names(source))


def _of_graph(graph: FlowGraph) -> frozenset[str]:
    found: set[str] = set()
    waiting = [graph]
    while waiting:
        for node in waiting.pop().nodes:
            if node.label is not None:
                found.add(node.label)
            if node.block is not None:
                waiting.append(node.block.graph)
    return frozenset(found)
