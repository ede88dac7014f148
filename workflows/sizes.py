"""Checks the size of a model before anything is derived from it."""

from __future__ import annotations

from collections.abc import Iterator

from workflows.errors import WorkflowTooLarge
from workflows.limits import CompileLimits
from workflows.model import Source
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.relations.outline import parts_of
from workflows.tree import Activity, ProcessTree


def check_model_size(source: Source, limits: CompileLimits) -> None:
    """Reject a model with too many elements or event types, in time and memory that are linear in the limits."""
    types: set[str] = set()
    for count, label in enumerate(_labels(source), 1):
        if count > limits.max_elements:
            raise WorkflowTooLarge.beyond("max_elements", limits.max_elements, "elements (activities, gateways, steps)")
        if label is not None:
            types.add(label)
            if len(types) > limits.max_event_types:
                raise WorkflowTooLarge.beyond("max_event_types", limits.max_event_types, "event types")


def _labels(source: Source) -> Iterator[str | None]:
    """The event type of each element; None for an element without one."""
    match source:
        case FlowGraph():
            for node in source.nodes:
                yield node.label
                if node.block is not None:
                    yield from _labels(node.block.graph)
        case WorkflowNet():
            yield from (None for _ in source.places)
            yield from (transition.label for transition in source.transitions)
        case _:
            waiting: list[ProcessTree] = [source]
            while waiting:
                block = waiting.pop()
                yield block.name if isinstance(block, Activity) else None
                waiting.extend(parts_of(block))
