"""Process trees as flow graphs, to be drawn."""

from __future__ import annotations

from workflows.nets.graph import Block, Flow, FlowGraph, Node, NodeKind, Repeat
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
)

_GATEWAYS = {
    ExclusiveChoice: NodeKind.EXCLUSIVE,
    Parallel: NodeKind.PARALLEL,
    InclusiveChoice: NodeKind.INCLUSIVE,
}


def tree_to_graph(tree: ProcessTree, graph_id: str = "tree", name: str = "") -> FlowGraph:
    """A flow graph with the same complete traces: a gateway at each end of a choice, a parallel block or a loop.

    Args:
        tree: What is drawn.
        graph_id: Of the graph; ids of its elements begin with it.
        name: Of the graph.
    """
    drawing = _Drawing(graph_id)
    start = drawing.node(NodeKind.START)
    last = drawing.put(tree, start)
    drawing.connect(last, drawing.node(NodeKind.END))
    return FlowGraph(id=graph_id, name=name, nodes=tuple(drawing.nodes), flows=tuple(drawing.flows))


class _Drawing:
    """Nodes and flows so far."""

    def __init__(self, graph_id: str) -> None:
        self._id = graph_id
        self.nodes: list[Node] = []
        self.flows: list[Flow] = []

    def node(self, kind: NodeKind, name: str = "", block: Block | None = None, described: str = "") -> str:
        """A new node; gives its id."""
        label = name if kind is NodeKind.ACTIVITY else None
        node_id = f"{self._id}.{kind}{len(self.nodes) + 1}"
        self.nodes.append(Node(id=node_id, kind=kind, name=name, label=label, block=block, described=described))
        return node_id

    def connect(self, source: str, target: str) -> None:
        """A new flow."""
        self.flows.append(Flow(id=f"{self._id}.flow{len(self.flows) + 1}", source=source, target=target))

    def put(self, tree: ProcessTree, after: str) -> str:
        """Draws a tree behind a node; gives the node that comes last."""
        match tree:
            case Silent():
                return after
            case Activity(name):
                return self._append(self.node(NodeKind.ACTIVITY, name, described=tree.origin), after)
            case Sequence(parts):
                for part in parts:
                    after = self.put(part, after)
                return after
            case ExclusiveChoice(branches) | Parallel(branches) | InclusiveChoice(branches):
                return self._between(_GATEWAYS[type(tree)], branches, after, tree.origin)
            case Loop():
                return self._loop(tree, after)
            case Instances():
                repeat = Repeat(least=1, most=None, is_parallel=True)
                return self._repeated(tree.body, repeat, after, tree.origin)

    def _append(self, node: str, after: str) -> str:
        self.connect(after, node)
        return node

    def _between(self, kind: NodeKind, branches: tuple[ProcessTree, ...], after: str, described: str) -> str:
        split = self._append(self.node(kind, described=described), after)
        join = self.node(kind)
        for branch in branches:
            self.connect(self.put(branch, split), join)
        return join

    def _loop(self, tree: Loop, after: str) -> str:
        if tree.repetitions is not None:
            return self._counted(tree, tree.repetitions, after)
        join = self._append(self.node(NodeKind.EXCLUSIVE), after)
        split = self.node(NodeKind.EXCLUSIVE, described=tree.origin)
        self.connect(self.put(tree.body, join), split)
        self.connect(self.put(tree.redo, split), join)
        return split

    def _counted(self, tree: Loop, repetitions: int, after: str) -> str:
        if isinstance(tree.redo, Silent):
            return self._repeated(tree.body, Repeat(least=repetitions, most=repetitions), after, tree.origin)
        again = Repeat(least=repetitions - 1, most=repetitions - 1)
        return self._repeated(Sequence((tree.redo, tree.body)), again, self.put(tree.body, after), tree.origin)

    def _repeated(self, body: ProcessTree, repeat: Repeat, after: str, described: str) -> str:
        inner = tree_to_graph(body, f"{self._id}.block{len(self.nodes) + 1}")
        return self._append(self.node(NodeKind.BLOCK, "", Block(graph=inner, repeat=repeat), described), after)
