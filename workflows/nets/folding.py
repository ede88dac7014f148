"""Folds flow graphs and nets that consist of blocks into process trees with the same traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from workflows.nets import normal_forms
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.net import WorkflowNet
from workflows.nets.reduction import TreeNet, TreeTransition
from workflows.nets.ways import Ways, thrown_in
from workflows.tree import Activity, Instances, Loop, ProcessTree, Silent

MOST_COPIES = 20
_TERMINATE = "terminate"


def fold_net(net: WorkflowNet) -> ProcessTree | None:
    """Return the process tree of a net, or None if the rules do not reduce the net to blocks.

    A net is not folded if a step empties places, waits for empty places, or moves several tokens of one place, or if a
    step or place takes no part in complete traces.
    """
    if any(step.resets or step.waits or not step.inputs for step in net.transitions):
        return None
    bags = [net.initial, *(places for step in net.transitions for places in (step.inputs, step.outputs))]
    if any(len(set(places)) < len(places) for places in bags) or any(len(final) > 1 for final in net.finals):
        return None
    is_emptied = net.finals == ((),)
    if not net.finals or (() in net.finals and not is_emptied):
        return None
    whole = TreeNet()
    number = [whole.place(words) for words in net.places]
    whole.add(
        TreeTransition(inputs=frozenset({whole.source}), outputs=frozenset(number[place] for place in net.initial))
    )
    for step in net.transitions:
        tree = normal_forms.NOTHING if step.label is None else Activity(step.label, origin=step.element)
        inputs, outputs = (frozenset(number[place] for place in places) for places in (step.inputs, step.outputs))
        whole.add(TreeTransition(inputs=inputs, outputs=outputs, tree=tree, splits=step.element))
    if not is_emptied:
        whole.sink = whole.place("the end")
        for final in net.finals:
            whole.link(number[final[0]], whole.sink)
    whole.reduce()
    return whole.tree()


def fold_graph(graph: FlowGraph) -> ProcessTree | None:
    """Return the process tree of a flow graph, or None if the rules do not reduce the graph to blocks.

    A graph is not folded if an activity takes no part in complete traces. Raises ``ModelRefused`` for a malformed graph
    (``Ways``).
    """
    whole = _reduced(graph)
    return whole.tree() if whole is not None else None


def _reduced(graph: FlowGraph) -> TreeNet | None:
    whole = _drawn(graph)
    if whole is None:
        return None
    whole.reduce()
    if whole.is_single():  # here a terminate removes the only token, as an end does
        for name, step in list(whole.steps.items()):
            if step.signal == _TERMINATE:
                whole.change(name, replace(step, signal=""))
        whole.reduce()
    return whole


def _drawn(graph: FlowGraph) -> TreeNet | None:
    drawing = _Drawing(graph)
    return drawing.net if drawing.is_complete else None


class _Drawing:
    """Converts a flow graph to a ``TreeNet``, a net of steps that rules reduce to a process tree.

    ``is_complete`` says whether the net expresses every part of the graph.
    """

    def __init__(self, graph: FlowGraph) -> None:
        self.net = TreeNet()
        self._ways = Ways(graph)
        self._at: dict[str, int] = {}
        nodes = self._ways.reached()
        for node in nodes:
            self._put_places(node)
        starts = self._ways.starts
        self.net.words[self.net.source] = ", ".join(map(str, starts)) if len(starts) > 1 else ""
        for start in starts:
            self.net.link(self.net.source, self._next(self._ways.out_of(start)))
        if not starts:
            self.net.link(self.net.source, None)
        unreached = [node for node in graph.nodes if node.id not in self._at and node.kind is not NodeKind.START]
        self.is_complete = not any(_has_activity(node) for node in unreached)
        self.is_complete = self.is_complete and all(map(self._put_node, nodes))

    def _put_places(self, node: Node) -> None:
        incoming = self._ways.into(node)
        if node.kind in {NodeKind.PARALLEL, NodeKind.INCLUSIVE} and len(incoming) > 1:
            for flow in incoming:
                self._at[flow.id] = self.net.place("")
        self._at[node.id] = self.net.place(str(node) if node.kind is NodeKind.EXCLUSIVE else "")

    def _place_of(self, flow: Flow) -> int:
        return self._at[flow.id] if flow.id in self._at else self._at[flow.target]

    def _next(self, flows: tuple[Flow, ...]) -> int | None:
        return self._place_of(flows[0]) if flows else None

    def _put_node(self, node: Node) -> bool:
        """Add the steps of a node to the net. Return whether the net can express the node."""
        place, flows = self._at[node.id], self._ways.out_of(node)
        match node.kind:
            case NodeKind.START:
                pass
            case NodeKind.ACTIVITY:
                assert node.label is not None
                self.net.link(place, self._next(flows), Activity(node.label, origin=str(node)))
            case NodeKind.EXCLUSIVE:
                for target in map(self._place_of, flows):
                    self.net.link(place, target)
                if not flows:
                    self.net.link(place, None)
            case NodeKind.PARALLEL | NodeKind.INCLUSIVE:
                self._put_gateway(node, flows)
            case NodeKind.TERMINATE:
                self.net.add(TreeTransition(inputs=frozenset({place}), outputs=frozenset(), signal=_TERMINATE))
            case NodeKind.THROW:
                self.net.add(
                    TreeTransition(inputs=frozenset({place}), outputs=frozenset(), signal=_thrown(node.throws))
                )
            case NodeKind.BLOCK:
                return self._put_block(node, place, self._next(flows))
            case _:
                self.net.link(place, self._next(flows))
        return True

    def _put_gateway(self, node: Node, flows: tuple[Flow, ...]) -> None:
        incoming = self._ways.into(node)
        inputs = [self._place_of(flow) for flow in incoming] if len(incoming) > 1 else [self._at[node.id]]
        outputs = []
        for flow in flows:
            outputs.append(self.net.place(""))
            self.net.link(outputs[-1], self._place_of(flow))
        is_open = node.kind is NodeKind.INCLUSIVE
        self.net.add(
            TreeTransition(
                inputs=frozenset(inputs),
                outputs=frozenset(outputs),
                is_open_join=is_open and len(inputs) > 1,
                is_open_split=is_open and len(outputs) > 1,
                splits=str(node),
            )
        )

    def _put_block(self, node: Node, place: int, target: int | None) -> bool:
        block = node.block
        assert block is not None
        thrown = thrown_in(block.graph)
        exits = [leaves for leaves in block.exits if not leaves.is_thrown or leaves.id in thrown]
        if any(leaves.is_thrown and not leaves.is_interrupting for leaves in exits):
            return False
        if block.repeat and not block.repeat.least and any(not leaves.is_interrupting for leaves in exits):
            return False  # a block that does not run cannot be left
        for leaves in exits:
            if not leaves.is_interrupting:
                place = self._put_chance(place, self._next(self._ways.out_of(node, leaves.id)))
        leaving = [leaves for leaves in exits if leaves.is_interrupting]
        if leaving or (thrown - {leaves.id for leaves in exits}):
            return self._put_open_block(node, block, place, target, leaving)
        inner = fold_graph(block.graph)
        tree = _repeated(inner, block.repeat, str(node)) if inner is not None else None
        if tree is None:
            return False
        self.net.link(place, target, tree)
        return True

    def _put_chance(self, place: int, target: int | None) -> int:
        """Add a non-interrupting exit of a block, which leads to ``target``.

        Return the place where the block begins now. Whether the exit is taken is decided when the block begins.
        """
        begin, chance = self.net.place(""), self.net.place("")
        self.net.add(TreeTransition(inputs=frozenset({place}), outputs=frozenset({begin, chance})))
        self.net.link(chance, target)
        self.net.link(chance, None)
        return begin

    def _put_open_block(
        self, node: Node, block: Block, place: int, target: int | None, leaving: Iterable[Exit]
    ) -> bool:
        """Add the steps of a block that can be left while it runs. Return False if the net cannot express the block.

        The block must have one token at a time. If it can be left at any time, each step may have at most one event.
        """
        anytime = [leaves for leaves in leaving if not leaves.is_thrown]
        if block.repeat or (anytime and any(within.block for within in block.graph.nodes)):
            return False
        inner = _drawn(block.graph) if anytime else _reduced(block.graph)
        if inner is None or not inner.is_single() or any(len(step.inputs) > 1 for step in inner.steps.values()):
            return False
        if anytime and not all(isinstance(step.tree, Activity | Silent) for step in inner.steps.values()):
            return False
        targets = {leaves.id: self._next(self._ways.out_of(node, leaves.id)) for leaves in leaving}
        copied = self._copy(inner, place, target, {_thrown(name): where for name, where in targets.items()})
        for leaves in anytime:
            for other in copied:
                self.net.link(other, targets[leaves.id])
        return True

    def _copy(self, inner: TreeNet, place: int, target: int | None, thrown: dict[str, int | None]) -> list[int]:
        """Insert the net of a block between two places, and return its places except the first.

        ``thrown`` maps the signals of the block's own exits to the places where they lead. Throws to exits of outer
        blocks are kept.
        """
        number = {inner.source: place}
        for step in inner.steps.values():
            for other in sorted(step.inputs | step.outputs):
                if other not in number:
                    number[other] = self.net.place(inner.words[other])
        for _, step in sorted(inner.steps.items()):
            (begin,) = step.inputs
            if step.signal in thrown:
                self.net.link(number[begin], thrown[step.signal], step.tree)
            elif step.signal and step.signal != _TERMINATE:
                self.net.add(replace(step, inputs=frozenset({number[begin]})))
            else:
                end = number[next(iter(step.outputs))] if step.outputs else target
                self.net.link(number[begin], end, step.tree)
        return [other for other in number.values() if other != place]


def _thrown(exit_id: str) -> str:
    return f"throw {exit_id}"


def _has_activity(node: Node) -> bool:
    if node.kind is NodeKind.BLOCK:
        assert node.block is not None
        return any(map(_has_activity, node.block.graph.nodes))
    return node.kind is NodeKind.ACTIVITY


def _repeated(tree: ProcessTree, repeat: Repeat | None, origin: str) -> ProcessTree | None:
    """Return the tree of a repeated block. None if the repetition has too many alternatives to write out."""
    if repeat is None:
        return tree
    runs = _Runs(tree, repeat.is_parallel and not normal_forms.is_short(tree), origin)
    if repeat.most is None:
        if repeat.least <= 1:
            tree = runs.open()
        elif repeat.least > MOST_COPIES and runs.is_parallel:
            return None
        else:
            tree = runs.exactly(repeat.least - 1, runs.open())
        return normal_forms.choice((tree, normal_forms.NOTHING), origin) if repeat.least == 0 else tree
    if repeat.most - repeat.least >= MOST_COPIES or (runs.is_parallel and repeat.most > MOST_COPIES):
        return None
    return normal_forms.choice((runs.exactly(count) for count in range(repeat.least, repeat.most + 1)), origin)


@dataclass(frozen=True, slots=True)
class _Runs:
    body: ProcessTree
    is_parallel: bool
    origin: str

    def open(self) -> ProcessTree:
        if isinstance(self.body, Silent):
            return self.body
        if self.is_parallel:
            return Instances(body=self.body, origin=self.origin)
        return Loop(body=self.body, origin=self.origin)

    def exactly(self, count: int, more: ProcessTree = normal_forms.NOTHING) -> ProcessTree:
        if self.is_parallel:
            return normal_forms.parallel((*((self.body,) * count), more), self.origin)
        runs = self.body if count == 1 else normal_forms.NOTHING
        if count > 1 and not isinstance(self.body, Silent):
            runs = Loop(body=self.body, repetitions=count, origin=self.origin)
        return normal_forms.sequence((runs, more), self.origin)
