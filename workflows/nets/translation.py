"""Translates flow graphs to nets.

Flows become places. If a node takes one token from any incoming flow, its incoming flows share one place. Blocks are
replaced by the nets of their graphs:

- A graph that always has exactly one token is complete when its token reaches an end. The token leads on from there.
- Any other graph that folds to a process tree is replaced by the net of the tree, unless it can be left at any time.
- For any other graph, a step that waits until all places of the graph are empty completes the graph.

An inclusive gateway with several incoming flows gets one step for each set of filled flows. The step waits until no
token can reach the other flows: until all places from which a token could reach them are empty (BPMN 2.0, section
13.4.3). Interrupting exits and terminate ends empty the places of their block or graph.

If a token enters a block while the block still runs, both runs share the same places. Then a join can take tokens of
both runs, and a step that waits for the end of one run, or empties its places, also affects the other run. For each
block in which this is possible, a place counts the current runs (``RunCounter``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from workflows.errors import ModelRefused
from workflows.nets.assembly import Assembly
from workflows.nets.folding import fold_graph
from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.net import Places, Transition, WorkflowNet
from workflows.nets.normal_forms import is_short
from workflows.nets.tree_nets import can_be_net, put_tree
from workflows.nets.ways import Ways, find_exit, iterate_nodes

MOST_JOINED = 8
MOST_SPLIT = 10
MOST_COPIES = 20


@dataclass(frozen=True, slots=True)
class RunCounter:
    """A place of a net that has one token for each current run of the block ``node``.

    If the place can have two tokens, the net may have traces that the flow graph does not have. If ``is_mixing``, steps
    of the block wait until places are empty, or remove their tokens. Then the net may also lack traces of the graph.
    """

    place: int
    node: Node
    is_mixing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The net of a flow graph, and the parts of the graph that the net does not express exactly.

    If no place of ``counters`` ever has two tokens, the net has all complete traces of the graph. If ``notices`` is
    also empty, the net has no other traces. If a place of ``counters`` gets two tokens, the net may lack traces of the
    graph. Without its waits, and with resets that may leave tokens, the net would have all of them.

    A notice has the id of an element, and the part of its meaning that the net does not express exactly.
    """

    net: WorkflowNet
    notices: tuple[tuple[str, str], ...] = ()
    counters: tuple[RunCounter, ...] = ()


def translate(graph: FlowGraph) -> Translation:
    """Return a net with the traces of a flow graph. A trace is complete when no token is left.

    Raises ``ModelRefused`` in these cases: ``Ways`` refuses a graph, no block around a throw has its exit, an inclusive
    gateway joins more than ``MOST_JOINED`` or splits into more than ``MOST_SPLIT`` flows, or the net is too large.
    """
    translator = _Translator()
    source = translator.assembly.place("the beginning")
    begins = _Scope(translator, graph, _Way()).add_steps()
    for name, tokens in begins:
        translator.assembly.silent((source,), tokens, name)
    net = translator.assembly.finish((source,), ((),))
    counters = [replace(each, place=translator.assembly.numbers[each.place]) for each in translator.counters]
    return Translation(net=net, notices=tuple(dict.fromkeys(translator.notices)), counters=tuple(counters))


def is_single(graph: FlowGraph) -> bool:
    """Check whether a run of a graph always has exactly one token. A running block counts as one token."""
    ways = Ways(graph)
    splits = (NodeKind.PARALLEL, NodeKind.INCLUSIVE)
    return not any(
        (node.kind in splits and len(ways.out_of(node)) > 1)
        or (node.block and any(not leaves.is_interrupting for leaves in node.block.exits))
        for node in graph.nodes
    )


def is_single_throughout(graph: FlowGraph) -> bool:
    """Check whether a graph and all blocks in it always have exactly one token. No block may have concurrent runs."""
    return is_single(graph) and all(
        is_single_throughout(node.block.graph) and not (node.block.repeat and node.block.repeat.is_parallel)
        for node in graph.nodes
        if node.block
    )


def _keeps_apart(block: Block) -> bool:
    """Check whether concurrent runs of a block cannot affect each other, although they share places of the net."""
    gateways = (NodeKind.PARALLEL, NodeKind.INCLUSIVE)
    return (
        is_single_throughout(block.graph)
        and not (block.repeat and block.repeat.is_parallel)
        and all(leaves.is_interrupting or leaves.is_thrown for leaves in block.exits)
        and not any(inner.kind in gateways for inner in iterate_nodes(block.graph))
    )


_Begins = list[tuple[str, Places]]  # alternatives to begin a graph: an element in words, and the places that it fills


@dataclass(slots=True)
class _Frame:
    """A block that is being replaced by its net.

    Attributes:
        exits: The places that each exit fills.
        is_alone: Whether no token can enter the block while the block already runs.
        throws: The throws in the block: the place from which a throw takes a token, the places that the throw fills
            besides those of its exit, the exit, and the throwing node in words.
    """

    node: Node
    exits: dict[str, Places]
    is_alone: bool
    throws: list[tuple[int, Places, Exit, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Way:
    """How a graph is connected to its surroundings in the net.

    Attributes:
        done: Places that get a token when a token of the run ends.
        frames: The surrounding blocks, the outermost first.
        running: A place that has a token during the run. None if no step waits for the end of the run.
        after: Places that get a token when a terminate ends the run. Only used if ``running`` is given.
    """

    done: Places = ()
    frames: tuple[_Frame, ...] = ()
    running: int | None = None
    after: Places = ()

    @property
    def is_left_anywhere(self) -> bool:
        """Whether a surrounding block can be left at any time.

        Its exits then take a token from any place of the run.
        """
        blocks = [frame.node.block for frame in self.frames if frame.node.block]
        return any(not leaves.is_thrown for block in blocks for leaves in block.exits)


class _Translator:
    def __init__(self) -> None:
        self.assembly = Assembly()
        self.notices: list[tuple[str, str]] = []
        self.counters: list[RunCounter] = []

    def throw(self, frames: tuple[_Frame, ...], node: Node, place: int, tokens: Places) -> None:
        catcher = find_exit(tuple(frame.node for frame in frames), node.throws)
        if catcher is None:
            raise ModelRefused([(node.id, f"throws {node.throws!r}, an exit that no block around it has")])
        frame = next(frame for frame in frames if frame.node is catcher[0])
        frame.throws.append((place, tokens, catcher[1], str(node)))

    def repeated(self, node: Node, block: Block, way: _Way) -> _Begins:
        repeat = block.repeat
        if repeat is None:
            return self.run(block.graph, way)
        if repeat.is_parallel:
            tree = fold_graph(block.graph)
            if tree is None or not is_short(tree):
                return self._at_once(node, block.graph, repeat, way)
        return self._one_by_one(node, block.graph, self._bounded(node, repeat), way)

    def _bounded(self, node: Node, repeat: Repeat) -> Repeat:
        """Return the repetition, without a largest number if more than ``MOST_COPIES`` copies of the block were needed.

        A notice says that the larger numbers are not counted.
        """
        if max(repeat.least, repeat.most or 0) <= MOST_COPIES:
            return repeat
        least = min(repeat.least, MOST_COPIES)
        exact = f"{repeat.least} to {repeat.most}" if repeat.most is not None else f"{repeat.least} or more"
        self.notices.append((node.id, f"read as {least} or more repetitions, not {exact}: more are not counted"))
        return Repeat(least=least, most=None, is_parallel=repeat.is_parallel)

    def run(self, graph: FlowGraph, way: _Way) -> _Begins:
        if is_single(graph):
            return _Scope(self, graph, way).add_steps()
        tree = None if way.is_left_anywhere else fold_graph(graph)
        if tree is not None and can_be_net(tree):
            name = graph.name or graph.id
            begin, end = self.assembly.place(f"before {name!r}"), self.assembly.place(f"after {name!r}")
            put_tree(self.assembly, tree, begin, end)
            self.assembly.silent((end,), way.done, f"end of {name!r}")
            return [("", (begin,))]
        return self._guarded(graph, way)

    def _guarded(self, graph: FlowGraph, way: _Way) -> _Begins:
        name = graph.name or graph.id
        running = self.assembly.place(f"while {name!r} runs", is_bookkeeping=True)
        begins = _Scope(self, graph, _Way(frames=way.frames, running=running, after=way.done)).add_steps()
        waits = tuple(range(running + 1, len(self.assembly.places)))
        self.assembly.step(Transition(inputs=(running,), outputs=way.done, waits=waits, element=f"end of {name!r}"))
        return [(name, (running, *tokens) if tokens else way.done) for name, tokens in begins]

    def _one_by_one(self, node: Node, graph: FlowGraph, repeat: Repeat, way: _Way) -> _Begins:
        """Add the sequential runs of a repeated block, each as a copy of the graph. The last copy is added first.

        If the number of runs has no limit, the last copy may repeat.
        """
        begins: _Begins = []
        for count in range(repeat.least or 1 if repeat.most is None else repeat.most, 0, -1):
            gate = self.assembly.place(f"after run {count} of {node}", is_bookkeeping=True)
            if count >= repeat.least:
                self.assembly.silent((gate,), way.done, str(node))
            following, begins = begins, self.run(graph, _Way((gate,), way.frames))
            for _, tokens in following or (begins if repeat.most is None else []):
                self.assembly.silent((gate,), tokens, str(node))
        return [*begins, *([("", way.done)] if not repeat.least else [])]

    def _at_once(self, node: Node, graph: FlowGraph, repeat: Repeat, way: _Way) -> _Begins:
        if repeat.most is None or repeat.most > MOST_COPIES:
            return self._anything(node, graph, repeat, way)
        ends: list[int] = []
        starts: list[int] = []
        for count in range(1, repeat.most + 1):
            start = self.assembly.place(f"before run {count} of {node}")
            end = self.assembly.place(f"after run {count} of {node}", is_bookkeeping=True)
            for name, tokens in self.run(graph, _Way((end,), way.frames)):
                self.assembly.silent((start,), tokens, name)
            if count > repeat.least:
                self.assembly.silent((start,), (end,), str(node))
            starts.append(start)
            ends.append(end)
        if not ends:
            return [("", way.done)]
        self.assembly.silent(ends, way.done, str(node))
        return [("", tuple(starts))]

    def _anything(self, node: Node, graph: FlowGraph, repeat: Repeat, way: _Way) -> _Begins:
        """Add any number of concurrent runs of a graph: its activities, any number of times, in any order.

        A net cannot tell concurrent runs apart, so the order within a run is lost. If at least one run is required, one
        run keeps its order.
        """
        message = "runs any number of times at once; read as any of its activities, any number of times, in any order"
        self.notices.append((node.id, message if not repeat.least else f"{message}, beside one run"))
        running = self.assembly.place(f"while {node} runs")
        for inner in iterate_nodes(graph):
            if inner.kind is NodeKind.ACTIVITY:
                self.assembly.step(
                    Transition(inputs=(running,), outputs=(running,), label=inner.label, element=str(inner))
                )
            elif inner.throws and find_exit(tuple(frame.node for frame in way.frames), inner.throws):
                self.throw(way.frames, inner, running, (running,))
        if not repeat.least:
            self.assembly.silent((running,), way.done, str(node))
            return [("", (running,))]
        end = self.assembly.place(f"after run 1 of {node}", is_bookkeeping=True)
        self.assembly.silent((running, end), way.done, str(node))
        return [(name, (running, *tokens)) for name, tokens in self.run(graph, _Way((end,), way.frames))]


class _Scope:
    def __init__(self, translator: _Translator, graph: FlowGraph, way: _Way) -> None:
        self._translator = translator
        self._assembly = translator.assembly
        self._graph = graph
        self._ways = Ways(graph)
        self._done = way.done
        self._frames = way.frames
        self._after = way.done if way.running is None else way.after
        self._first = len(self._assembly.places) if way.running is None else way.running
        self._at: dict[str, int] = {}
        self._positions: dict[int, tuple[Flow, ...]] = {}
        for node in graph.nodes:
            self._put_places(node)

    def add_steps(self) -> _Begins:
        """Add the steps of all nodes of the graph.

        Return each start with the places that must be filled to begin there.
        """
        for node in self._graph.nodes:
            self._put_node(node)
        for node in self._graph.nodes:
            if not self._ways.into(node):
                continue
            if node.kind is NodeKind.INCLUSIVE:
                self._put_inclusive(node)
            elif node.kind is NodeKind.TERMINATE:
                resets = () if is_single(self._graph) else range(self._first, len(self._assembly.places))
                self._step(node, (self._at[node.id],), self._after, resets=resets)
        return [(str(start), self._out(start)) for start in self._ways.starts] or [("", self._done)]

    def _put_places(self, node: Node) -> None:
        incoming = self._ways.into(node)
        if node.kind in {NodeKind.PARALLEL, NodeKind.INCLUSIVE} and len(incoming) > 1:
            for flow in incoming:
                self._new_place(flow.id, f"flow {flow.id} to {node}", (flow,))
            if node.kind is NodeKind.INCLUSIVE:
                self._new_place(node.id, f"within {node}", self._ways.out_of(node))
        else:
            words = str(node) if node.kind is NodeKind.EXCLUSIVE else f"before {node}"
            self._new_place(node.id, words, incoming[:1])

    def _new_place(self, name: str, words: str, position: tuple[Flow, ...]) -> None:
        self._at[name] = self._assembly.place(words)
        self._positions[self._at[name]] = position

    def _place_of(self, flow: Flow) -> int:
        return self._at[flow.id] if flow.id in self._at else self._at[flow.target]

    def _out(self, node: Node, leaves: str = "") -> Places:
        """Return the places that a node fills when it is done or, if ``leaves`` is given, when this exit is taken.

        Without outgoing flows, these are the places after the graph (``_done``).
        """
        return tuple(map(self._place_of, self._ways.out_of(node, leaves))) or self._done

    def _step(
        self, node: Node, inputs: Places, outputs: Places, *, waits: Iterable[int] = (), resets: Iterable[int] = ()
    ) -> None:
        label = node.label if node.kind is NodeKind.ACTIVITY else None
        self._assembly.step(
            Transition(
                inputs=inputs,
                outputs=outputs,
                label=label,
                waits=tuple(waits),
                resets=tuple(resets),
                element=str(node),
            )
        )

    def _put_node(self, node: Node) -> None:
        if not self._ways.into(node):
            return
        match node.kind:
            case NodeKind.START | NodeKind.INCLUSIVE | NodeKind.TERMINATE:
                return
            case NodeKind.EXCLUSIVE:
                choices: list[Places] = [(self._place_of(flow),) for flow in self._ways.out_of(node)]
                for tokens in choices or [self._done]:
                    self._step(node, (self._at[node.id],), tokens)
            case NodeKind.PARALLEL:
                incoming = tuple(map(self._place_of, self._ways.into(node)))
                self._step(node, incoming, self._out(node))
            case NodeKind.THROW:
                self._translator.throw(self._frames, node, self._at[node.id], self._out(node))
            case NodeKind.BLOCK:
                self._put_block(node)
            case _:
                self._step(node, (self._at[node.id],), self._out(node))

    def _put_inclusive(self, node: Node) -> None:
        incoming, outgoing = self._ways.into(node), self._ways.out_of(node)
        for flows, most, does in ((incoming, MOST_JOINED, "joins"), (outgoing, MOST_SPLIT, "splits into")):
            if len(flows) > most:
                raise ModelRefused([(node.id, f"{does} {len(flows)} flows; an inclusive gateway can have {most}")])
        choices = [tuple(map(self._place_of, choice)) for choice in _subsets(outgoing)] or [self._done]
        if len(incoming) == 1:
            for choice in choices:
                self._step(node, (self._place_of(incoming[0]),), choice)
            return
        for choice in choices:
            self._step(node, (self._at[node.id],), choice)
        heading = self._ways.heading_for(node)
        nowhere: frozenset[str] = frozenset()
        arrivals = {
            place: nowhere.union(*(heading.get(flow.id, nowhere) for flow in flows))
            for place, flows in self._positions.items()
        }
        for filled in _subsets(incoming):
            names = {flow.id for flow in filled}
            waits = [place for place, reached in arrivals.items() if reached and not reached & names]
            self._step(node, tuple(map(self._place_of, filled)), (self._at[node.id],), waits=waits)

    def _put_block(self, node: Node) -> None:
        assert node.block is not None
        first = len(self._assembly.places)
        is_alone = is_single(self._graph) and all(frame.is_alone for frame in self._frames)
        frame = _Frame(node, {leaves.id: self._out(node, leaves.id) for leaves in node.block.exits}, is_alone)
        counted = () if is_alone or _keeps_apart(node.block) else (self._bookkeeping(f"while {node} runs"),)
        offered = [leaves for leaves in node.block.exits if not leaves.is_interrupting and not leaves.is_thrown]
        chances = {leaves.id: self._bookkeeping(f"exit {leaves.name!r} of {node}") for leaves in offered}
        done = self._out(node)
        if offered or counted:
            finished = self._bookkeeping(f"after {node}")
            self._positions[finished] = self._ways.out_of(node)
            self._positions.update(dict.fromkeys((*chances.values(), *counted), ()))
            self._step(node, (finished, *counted), done, resets=chances.values())
            done = (finished,)
        first_step = len(self._assembly.transitions)
        begins = self._translator.repeated(node, node.block, _Way(done, (*self._frames, frame)))
        for name, tokens in begins:
            outputs = self._out(node) if tokens == done else (*tokens, *chances.values(), *counted)
            self._assembly.silent((self._at[node.id],), outputs, name or str(node))
        places = range(first, len(self._assembly.places))
        for place in places:
            self._positions.setdefault(place, self._ways.all_out_of(node))
        self._put_exits(node.block, frame, places, chances)
        if counted:
            steps = self._assembly.transitions[first_step:]
            is_mixing = bool(offered) or any(step.waits or step.resets for step in steps)
            if is_mixing or any(len(step.inputs) > 1 for step in steps):
                self._translator.counters.append(RunCounter(counted[0], node, is_mixing))

    def _bookkeeping(self, words: str) -> int:
        return self._assembly.place(words, is_bookkeeping=True)

    def _put_exits(self, block: Block, frame: _Frame, places: range, chances: dict[str, int]) -> None:
        """Add the steps of exits. A throw takes the token at its node. Other exits take any token of the block."""
        is_plain = is_single_throughout(block.graph) and not chances
        is_plain = is_plain and not (block.repeat and block.repeat.is_parallel)
        is_plain = is_plain and (frame.is_alone or _keeps_apart(block))
        emptied = () if is_plain else tuple(places)
        for place, outputs, leaves, element in frame.throws:
            if leaves.is_interrupting:
                step = Transition(inputs=(place,), outputs=frame.exits[leaves.id], resets=emptied, element=element)
            else:
                step = Transition(inputs=(place,), outputs=(*outputs, *frame.exits[leaves.id]), element=element)
            self._assembly.step(step)
        tokens = [place for place in places if place not in self._assembly.bookkeeping]
        for leaves in block.exits:
            element = f"exit {leaves.name!r} of {frame.node}"
            for place in tokens if not leaves.is_thrown else ():
                outputs = frame.exits[leaves.id]
                if leaves.is_interrupting:
                    step = Transition(inputs=(place,), outputs=outputs, resets=emptied, element=element)
                else:
                    inputs = place, chances[leaves.id]
                    step = Transition(inputs=inputs, outputs=(place, *outputs), element=element)
                self._assembly.step(step)


def _subsets(flows: tuple[Flow, ...]) -> Iterator[tuple[Flow, ...]]:
    for size in range(1, len(flows) + 1):
        yield from combinations(flows, size)
