"""Builders for tests of drawn models: small flow graphs as text, random ones, process trees as nets and as graphs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from constraints import ProcessAutomaton
from workflows.language.nets import automaton_of
from workflows.limits import CompileLimits
from workflows.nets.assembly import Assembly
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.markings import Progress, explore
from workflows.nets.net import WorkflowNet
from workflows.nets.translation import translate
from workflows.nets.tree_nets import put_tree
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


def to_net(graph: FlowGraph) -> WorkflowNet:
    """The net of a graph."""
    return translate(graph).net


def automaton_of_net(net: WorkflowNet, limits: CompileLimits, progress: Progress | None = None) -> ProcessAutomaton:
    """The minimal automaton of a net's language; ``progress`` is called as by ``explore``."""
    return automaton_of(explore(net, limits, progress), limits)


def tree_to_net(tree: ProcessTree) -> WorkflowNet:
    """A net with the same complete traces as a tree; they end with one token in the net's only sink.

    A tree in which any number of parts of more than one event run at once has no such net with bounded places.
    """
    assembly = Assembly()
    source, sink = assembly.place("the beginning"), assembly.place("the end")
    put_tree(assembly, tree, source, sink)
    net = assembly.finish((source,), ((sink,),))
    assert len(net.finals[0]) == 1
    return net


def flow_graph(flows: str, **blocks: Block) -> FlowGraph:
    """A small graph written as a list of chains such as ``"s > x1 > A > x2, x1 > B > x2 > e"``.

    Names give the kinds of nodes: capital letters activities; ``s`` starts, ``e`` ends, ``t`` terminates, ``i`` does
    nothing, ``x``, ``p`` and ``o`` are exclusive, parallel and inclusive gateways, ``b`` blocks, which are passed as
    arguments; ``q`` throws the exit whose name follows the ``_``. ``b1.late`` is the flow that leaves by exit ``late``.
    Numbers, and text after a ``_``, distinguish nodes.
    """
    return _Writing("g").write(flows, blocks)


_KINDS = {
    "s": NodeKind.START,
    "e": NodeKind.END,
    "t": NodeKind.TERMINATE,
    "i": NodeKind.SILENT,
    "x": NodeKind.EXCLUSIVE,
    "p": NodeKind.PARALLEL,
    "o": NodeKind.INCLUSIVE,
    "b": NodeKind.BLOCK,
    "q": NodeKind.THROW,
}


class _Writing:
    """A graph under construction; ids begin with its own."""

    def __init__(self, graph_id: str) -> None:
        self._id = graph_id
        self._nodes: dict[str, Node] = {}

    def write(self, text: str, blocks: dict[str, Block]) -> FlowGraph:
        flows: list[Flow] = []
        for chain in text.split(","):
            names = [name.strip() for name in chain.split(">")]
            for source, target in pairwise(names):
                source_name, _, leaves = source.partition(".")
                ends = self._node(source_name, blocks), self._node(target, blocks)
                flows.append(Flow(id=f"{self._id}.f{len(flows)}", source=ends[0], target=ends[1], exit=leaves))
        return FlowGraph(id=self._id, name=self._id, nodes=tuple(self._nodes.values()), flows=tuple(flows))

    def _node(self, name: str, blocks: dict[str, Block]) -> str:
        node_id = f"{self._id}.{name}"
        if name not in self._nodes:
            kind = NodeKind.ACTIVITY if name[0].isupper() else _KINDS[name[0]]
            label = name[0] if name[0].isupper() else None
            block = _renamed(blocks[name], node_id) if kind is NodeKind.BLOCK else None
            throws = name.partition("_")[2] if kind is NodeKind.THROW else ""
            self._nodes[name] = Node(id=node_id, kind=kind, name=name, label=label, block=block, throws=throws)
        return node_id


def _renamed(block: Block, prefix: str) -> Block:
    """The block with ids that begin with ``prefix``."""
    graph = block.graph
    names = {node.id: f"{prefix}/{node.id}" for node in graph.nodes}
    nodes = tuple(
        Node(
            id=names[node.id],
            kind=node.kind,
            name=node.name,
            label=node.label,
            throws=node.throws,
            block=_renamed(node.block, names[node.id]) if node.block else None,
        )
        for node in graph.nodes
    )
    flows = tuple(
        Flow(id=f"{prefix}/{flow.id}", source=names[flow.source], target=names[flow.target], exit=flow.exit)
        for flow in graph.flows
    )
    inner = FlowGraph(id=f"{prefix}/{graph.id}", name=graph.name, nodes=nodes, flows=flows)
    return Block(graph=inner, exits=block.exits, repeat=block.repeat)


@st.composite
def flow_graphs(draw: st.DrawFn, depth: int = 1) -> FlowGraph:
    """Small graphs of any shape: gateways joined at random, several starts and ends, terminates, blocks with exits.

    Every node can be reached from a start. ``depth`` is the largest number of levels of blocks.
    """
    kinds = [*"ABCDxxppoo", *("bb" if depth > 0 else "")]
    middle = [
        f"{kind}{index}" for index, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=8)))
    ]
    blocks = {name: draw(drawn_blocks(f"exit{depth}{name}", depth - 1)) for name in middle if name[0] == "b"}
    starts = ["s1"] if draw(st.integers(0, 4)) else ["s1", "s2"]
    lasts = [draw(st.sampled_from(["e98", "e98", "t98"])), draw(st.sampled_from(["e99", "t99"]))]
    chains: list[str] = []
    open_ways = list(starts)
    for name in middle:
        way = draw(st.sampled_from(open_ways))
        chains.append(f"{way} > {name}")
        if way[0] not in "xpo":
            open_ways.remove(way)
        open_ways.append(name)
        open_ways += [f"{name}.{leaves.id}" for leaves in blocks[name].exits] if name in blocks else []
    for way in open_ways:
        is_new = not any(chain.startswith(f"{way} >") for chain in chains)
        if draw(st.integers(0, 9 if is_new else 2)) > (0 if is_new else 1):
            is_back = not draw(st.integers(0, 5))
            later = middle[middle.index(way.partition(".")[0]) + 1 :] if way not in starts else middle
            joins = [name for name in later if name[0] in "xpo"]
            chains.append(f"{way} > {draw(st.sampled_from(middle if is_back else [*later, *joins, *joins, *lasts]))}")
    return _Writing("g").write(", ".join(chains), blocks)


@st.composite
def drawn_blocks(draw: st.DrawFn, exit_name: str, depth: int) -> Block:
    """Blocks of any shape with at most one exit, ``exit_name``; with a depth below 0 none contains blocks."""
    exits: tuple[Exit, ...] = ()
    is_thrown = draw(st.booleans())
    if draw(st.integers(0, 2)):
        exits = (Exit(id=exit_name, is_interrupting=draw(st.booleans()), is_thrown=is_thrown),)
    shapes = [
        "s > A",
        "s > A > e",
        "s > A > B > e",
        "s > p1 > A > p2, p1 > B > p2 > e",
        "s > p1 > A > e1, p1 > B > e2",
        "s > p1 > A > t1, p1 > B > e2",
        "s > x1 > A > e1, x1 > B",
        "s1 > A > e, s2 > e",
        "s > o1 > A > o2, o1 > B > o2 > e",
        "s > x1 > A > x1 > e",
    ]
    if exits and is_thrown:
        shapes = [
            f"s > x1 > A > e, x1 > q1_{exit_name}",
            f"s > A > p1 > q1_{exit_name}, p1 > B > e",
            f"s > p1 > q1_{exit_name} > A > e1, p1 > B > e2",
        ]
    graph = (
        _Writing("h").write(draw(st.sampled_from(shapes)), {})
        if depth < 0 or draw(st.booleans()) or is_thrown
        else draw(flow_graphs(depth))
    )
    repeats = [
        None,
        None,
        None,
        Repeat(),
        Repeat(least=0, most=1),
        Repeat(least=2, most=3),
        Repeat(least=0),
        Repeat(least=1, most=2, is_parallel=True),
    ]
    return Block(graph=graph, exits=exits, repeat=draw(st.sampled_from(repeats)))


def tree_to_graph(tree: ProcessTree, graph_id: str = "tree", name: str = "") -> FlowGraph:
    """A flow graph with the same complete traces: a gateway at each end of a choice, a parallel block or a loop."""
    drawing = _Drawing(graph_id)
    start = drawing.node(NodeKind.START)
    last = drawing.put(tree, start)
    drawing.connect(last, drawing.node(NodeKind.END))
    return FlowGraph(id=graph_id, name=name, nodes=tuple(drawing.nodes), flows=tuple(drawing.flows))


class _Drawing:
    def __init__(self, graph_id: str) -> None:
        self._id = graph_id
        self.nodes: list[Node] = []
        self.flows: list[Flow] = []

    def node(self, kind: NodeKind, name: str = "", block: Block | None = None, described: str = "") -> str:
        label = name if kind is NodeKind.ACTIVITY else None
        node_id = f"{self._id}.{kind}{len(self.nodes) + 1}"
        self.nodes.append(Node(id=node_id, kind=kind, name=name, label=label, block=block, described=described))
        return node_id

    def connect(self, source: str, target: str) -> None:
        self.flows.append(Flow(id=f"{self._id}.flow{len(self.flows) + 1}", source=source, target=target))

    def put(self, tree: ProcessTree, after: str) -> str:
        """Add a tree after a node; returns its last node."""
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
