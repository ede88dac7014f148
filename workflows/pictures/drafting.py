"""Drafts models that have no drawing: trees, flow graphs and nets become boxes and arrows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from workflows.diagram import Diagram
from workflows.model import Source
from workflows.nets.graph import Block, FlowGraph, Node, NodeKind
from workflows.nets.net import Places, WorkflowNet
from workflows.pictures.draft import Arrow, Box, PictureDraft, small_box, task_box
from workflows.pictures.labels import extent
from workflows.pictures.layout import PORT_DISTANCE, laid_out, moved
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    parts_of,
)

_HEADER = 34.0
_PADDING = 20.0

_GATEWAYS = {NodeKind.EXCLUSIVE: "exclusive", NodeKind.PARALLEL: "parallel", NodeKind.INCLUSIVE: "inclusive"}
_EVENTS = {
    NodeKind.START: "start",
    NodeKind.END: "end",
    NodeKind.TERMINATE: "terminate",
    NodeKind.THROW: "end",
    NodeKind.SILENT: "intermediate",
}


def draft_of(source: Source) -> PictureDraft:
    """Return the boxes and arrows for a process tree, a flow graph or a net."""
    match source:
        case FlowGraph():
            return _of_graph(source)
        case WorkflowNet():
            return _of_net(source)
        case _:
            return _of_tree(source)


def size_of(source: Source) -> int:
    """Return the number of boxes and arrows, including nested ones. For a tree, it is roughly the number of boxes."""
    match source:
        case FlowGraph():
            inner = sum(size_of(node.block.graph) for node in source.nodes if node.block is not None)
            return len(source.nodes) + len(source.flows) + inner
        case WorkflowNet():
            arcs = sum(
                len(transition.inputs) + len(transition.outputs) + len(transition.resets) + len(transition.waits)
                for transition in source.transitions
            )
            return len(source.places) + len(source.transitions) + arcs
        case Activity() | Silent():
            return 1
        case _:
            return 2 + isinstance(source, Instances) + sum(map(size_of, parts_of(source)))


_Ends: TypeAlias = list[tuple[int, str]]  # boxes without a successor yet, each with the text of its arrow


@dataclass(slots=True)
class _Growing:
    """A ``PictureDraft`` under construction. It numbers elements, because the nodes of a tree have no ids."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def add(self, box: Box, ends: _Ends) -> _Ends:
        self.boxes.append(box)
        self.join(ends, len(self.boxes) - 1)
        return [(len(self.boxes) - 1, "")]

    def join(self, ends: _Ends, target: int) -> None:
        for source, label in ends:
            element = f"arrow-{len(self.arrows) + 1}"
            self.arrows.append(Arrow(element=element, source=source, target=target, label=label))

    def name(self, kind: str) -> str:
        return f"{kind}-{len(self.boxes) + 1}"

    def done(self) -> PictureDraft:
        return PictureDraft(tuple(self.boxes), tuple(self.arrows))


def _of_tree(tree: ProcessTree) -> PictureDraft:
    growing = _Growing()
    ends = growing.add(small_box("start", "start"), [])
    ends = _grow(growing, tree, ends)
    growing.add(small_box("end", "end"), ends)
    return growing.done()


def _grow(growing: _Growing, tree: ProcessTree, ends: _Ends) -> _Ends:
    match tree:
        case Activity(name):
            return growing.add(task_box(growing.name("task"), name, event=name), ends)
        case Silent():
            return ends
        case Sequence(parts):
            for part in parts:
                ends = _grow(growing, part, ends)
            return ends
        case ExclusiveChoice(branches, probabilities):
            labels = [f"{share:.0%}" for share in probabilities] or [""] * len(branches)
            return _branched(growing, "exclusive", list(zip(branches, labels, strict=True)), ends)
        case InclusiveChoice(branches, probabilities):
            labels = [f"{share:.0%}" for share in probabilities] or [""] * len(branches)
            return _branched(growing, "inclusive", list(zip(branches, labels, strict=True)), ends)
        case Parallel(branches):
            return _branched(growing, "parallel", [(branch, "") for branch in branches], ends)
        case Loop():
            return _looped(growing, tree, ends)
        case Instances():
            inner = laid_out(_of_tree(tree.body))
            return growing.add(_area(growing.name("block"), "one or more, at once", inner), ends)


def _branched(growing: _Growing, kind: str, branches: list[tuple[ProcessTree, str]], ends: _Ends) -> _Ends:
    """Add the branches of a block between a splitting and a joining gateway of ``kind``. A single branch gets none.

    ``branches`` are trees with the texts of their arrows.
    """
    if len(branches) == 1:
        return _grow(growing, branches[0][0], ends)
    ((split, _),) = growing.add(small_box(growing.name(kind), kind), ends)
    met = [end for branch, label in branches for end in _grow(growing, branch, [(split, label)])]
    return growing.add(small_box(growing.name(kind), kind), met)


def _looped(growing: _Growing, loop: Loop, ends: _Ends) -> _Ends:
    ends = growing.add(small_box(growing.name("exclusive"), "exclusive"), ends)
    ((begin, _),) = ends
    ends = growing.add(small_box(growing.name("exclusive"), "exclusive"), _grow(growing, loop.body, ends))
    ((split, _),) = ends
    label = "again" if loop.repetitions is None else f"{loop.repetitions} times in all"
    growing.join(_grow(growing, loop.redo, [(split, label)]), begin)
    return ends


def _area(element: str, label: str, inner: Diagram, ports: tuple[tuple[str, str], ...] = ()) -> Box:
    held = extent(inner)
    height = max(held.bottom - held.top + _HEADER + _PADDING, 2 * PORT_DISTANCE * (len(ports) + 1))
    return Box(
        element=element,
        kind="subprocess",
        label=label,
        width=held.right - held.left + 2 * _PADDING,
        height=height,
        inner=moved(inner, _PADDING - held.left, _HEADER - held.top),
        ports=ports,
    )


def _of_graph(graph: FlowGraph) -> PictureDraft:
    number = {node.id: index for index, node in enumerate(graph.nodes)}
    ports = {
        exit_.id: place
        for node in graph.nodes
        if node.block is not None
        for place, exit_ in enumerate(node.block.exits, start=1)
    }
    arrows = tuple(
        Arrow(element=flow.id, source=number[flow.source], target=number[flow.target], port=ports.get(flow.exit, 0))
        for flow in graph.flows
        if flow.source in number and flow.target in number
    )
    return PictureDraft(tuple(map(_box_of, graph.nodes)), arrows)


def _box_of(node: Node) -> Box:
    if node.block is not None:
        inner = laid_out(_of_graph(node.block.graph))
        ports = tuple((exit_.id, exit_.name) for exit_ in node.block.exits)
        return _area(node.id, f"{node.name}{_repeats(node.block)}", inner, ports)
    if node.kind is NodeKind.ACTIVITY:
        return task_box(node.id, node.name or node.label or node.id, event=node.label)
    if node.kind in _GATEWAYS:
        return small_box(node.id, _GATEWAYS[node.kind], node.name)
    return small_box(node.id, _EVENTS.get(node.kind, "intermediate"), node.name)


def _repeats(block: Block) -> str:
    if block.repeat is None:
        return ""
    least, most = block.repeat.least, block.repeat.most
    times = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
    return f" ({times} times{', at once' if block.repeat.is_parallel else ''})"


def _of_net(net: WorkflowNet) -> PictureDraft:
    """Return the draft of a net: first its places, then its transitions. Reset and inhibitor arcs are dashed."""
    final = {place for marking in net.finals for place in marking}
    boxes = [_place(number, net.initial, final) for number in range(len(net.places))]
    arrows: list[Arrow] = []
    for number, transition in enumerate(net.transitions):
        element, box_number = f"transition-{number + 1}", len(boxes)
        if transition.label is None:
            boxes.append(small_box(element, "silent"))
        else:
            boxes.append(task_box(element, transition.label, kind="transition", event=transition.label))
        for kind, places in (("in", transition.inputs), ("reset", transition.resets), ("wait", transition.waits)):
            arrows.extend(_entering(element, kind, places, box_number))
        for place in dict.fromkeys(transition.outputs):
            label = _often(transition.outputs, place)
            arrows.append(Arrow(element=f"{element}-out-{place + 1}", source=box_number, target=place, label=label))
    return PictureDraft(tuple(boxes), tuple(arrows))


def _entering(element: str, kind: str, places: Places, target: int) -> Iterator[Arrow]:
    for place in dict.fromkeys(places):
        yield Arrow(
            element=f"{element}-{kind}-{place + 1}",
            source=place,
            target=target,
            label=_often(places, place) if kind == "in" else kind,
            is_dashed=kind != "in",
        )


def _place(number: int, initial: Places, final: set[int]) -> Box:
    kind = "marked-place" if number in initial else "final-place" if number in final else "place"
    return small_box(f"place-{number + 1}", kind)


def _often(places: Places, place: int) -> str:
    count = places.count(place)
    return str(count) if count > 1 else ""
