"""The executable meaning of nets and flow graphs: their complete traces, by playing all token games.

Slow and obvious. A graph is played according to its description, not by way of nets. ``NodePlay`` and ``RunPlay`` are
values of one situation; a step gives the situations after it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf
from typing import TypeAlias, TypeVar

from workflows.errors import ModelRefused
from workflows.nets.graph import Exit, Flow, FlowGraph, Node, NodeKind, Repeat
from workflows.nets.net import Places, Transition, WorkflowNet
from workflows.nets.ways import Ways

Word: TypeAlias = tuple[str, ...]
_State = TypeVar("_State", bound=Hashable)
_Move: TypeAlias = tuple[str | None, _State]

MOST_TOKENS = 12
_ONCE = Repeat(least=1, most=1)


def words_of_net(net: WorkflowNet, max_length: int, most_tokens: int = MOST_TOKENS) -> frozenset[Word]:
    """The complete traces of at most ``max_length`` events.

    Markings of more than ``most_tokens`` tokens are not followed, so that the search terminates on unbounded nets.
    """

    def moves(marking: Places) -> Iterator[_Move[Places]]:
        for transition in net.transitions:
            after = fire(transition, marking)
            if after is not None and len(after) <= most_tokens:
                yield transition.label, after

    finals = set(net.finals)
    return _words(net.initial, moves, lambda marking: marking in finals, max_length)


def fire(transition: Transition, marking: Places) -> Places | None:
    """The marking after a step; None if the step is not enabled."""
    tokens = Counter(marking)
    inputs = Counter(transition.inputs)
    if any(tokens[place] < count for place, count in inputs.items()) or any(tokens[p] for p in transition.waits):
        return None
    tokens -= inputs
    for place in transition.resets:
        del tokens[place]
    tokens.update(transition.outputs)
    return tuple(sorted(tokens.elements()))


def _words(
    initial: _State,
    moves: Callable[[_State], Iterable[_Move[_State]]],
    is_final: Callable[[_State], bool],
    max_length: int,
    most_looks: float = inf,
) -> frozenset[Word]:
    """All words of at most ``max_length`` letters from the initial to a final state; see ``words_of_graph``."""
    known: dict[_State, list[_Move[_State]]] = {}
    words: set[Word] = set()
    level: dict[Word, set[_State]] = {(): {initial}}
    for _ in range(max_length + 1):
        deeper: dict[Word, set[_State]] = defaultdict(set)
        for word, states in level.items():
            waiting = list(states)
            while waiting:
                state = waiting.pop()
                most_looks -= 1
                if most_looks < 0:
                    return frozenset(words)
                if is_final(state):
                    words.add(word)
                if state not in known:
                    known[state] = list(moves(state))
                for label, after in known[state]:
                    if label is not None:
                        deeper[*word, label].add(after)
                    elif after not in states:
                        states.add(after)
                        waiting.append(after)
        level = deeper
    return frozenset(words)


@dataclass(frozen=True, slots=True)
class RunPlay:
    """One run of a graph: ids of the flows with tokens, one for each token, and the running blocks; both sorted."""

    tokens: tuple[str, ...] = ()
    blocks: tuple[NodePlay, ...] = ()

    @property
    def is_complete(self) -> bool:
        return not self.tokens and not self.blocks

    @property
    def size(self) -> int:
        """The number of tokens, including those in blocks."""
        return len(self.tokens) + sum(max(1, sum(run.size for run in play.runs)) for play in self.blocks)


@dataclass(frozen=True, slots=True)
class NodePlay:
    """A running block: its node, its current runs, the number of earlier runs, and the exits already taken."""

    node: str
    runs: tuple[RunPlay, ...]
    past: int = 0
    taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A possible step of a run: its event, the run after it, and the exit that it throws to outer blocks, if any."""

    label: str | None
    after: RunPlay
    thrown: str = ""


def words_of_graph(
    graph: FlowGraph, max_length: int, most_tokens: int = MOST_TOKENS, most_looks: float = inf
) -> frozenset[Word]:
    """The complete traces of at most ``max_length`` events, according to ``workflows.nets.graph``.

    Situations of more than ``most_tokens`` tokens are not followed. Of a block that runs any number of times at once,
    at most ``max_length`` copies are played, or the required number; more have no room in a trace. After ``most_looks``
    examined pairs of a situation and a prefix that leads to it, the traces found so far are returned.
    """
    game = _Game(max_length)

    def moves(run: RunPlay | None) -> Iterator[_Move[RunPlay | None]]:
        if run is None:
            yield from ((None, begun) for begun in game.begin(graph))
            return
        for step in game.steps(graph, run):
            if step.thrown:
                raise ModelRefused([(step.thrown, "is thrown, but no block around the node has this exit")])
            if step.after.size <= most_tokens:
                yield step.label, step.after

    return _words(None, moves, lambda run: run is not None and run.is_complete, max_length, most_looks)


def is_safe(graph: FlowGraph, max_length: int, most_looks: float = inf) -> bool:
    """Whether, within ``max_length`` events, no flow ever has two tokens and no block runs twice at once.

    False if undecided after ``most_looks`` situations.
    """
    game = _Game(max_length)
    level: set[RunPlay] = set(game.begin(graph))
    for _ in range(max_length + 1):
        deeper: set[RunPlay] = set()
        waiting = list(level)
        while waiting:
            run = waiting.pop()
            most_looks -= 1
            if most_looks < 0 or not _is_spread(run):
                return False
            for step in game.steps(graph, run):
                if step.label is not None:
                    deeper.add(step.after)
                elif step.after not in level:
                    level.add(step.after)
                    waiting.append(step.after)
        level = deeper
    return True


def _is_spread(run: RunPlay) -> bool:
    """Whether the tokens of a run, and those within each of its blocks, are in different places."""
    names = [play.node for play in run.blocks]
    return (
        len(set(run.tokens)) == len(run.tokens)
        and len(set(names)) == len(names)
        and all(_is_spread(inner) for play in run.blocks for inner in play.runs)
    )


class _Game:
    def __init__(self, max_length: int) -> None:
        self._max_length = max_length
        self._ways: dict[str, Ways] = {}

    def _ways_of(self, graph: FlowGraph) -> Ways:
        if graph.id not in self._ways:
            self._ways[graph.id] = Ways(graph)
        return self._ways[graph.id]

    def begin(self, graph: FlowGraph) -> list[RunPlay]:
        ways = self._ways_of(graph)
        return [_put(RunPlay(), ways.out_of(start)) for start in ways.starts] or [RunPlay()]

    def steps(self, graph: FlowGraph, run: RunPlay) -> Iterator[_Step]:
        ways = self._ways_of(graph)
        for node in graph.nodes:
            match node.kind:
                case NodeKind.START:
                    continue
                case NodeKind.PARALLEL:
                    yield from self._joined(ways, node, run)
                case NodeKind.INCLUSIVE:
                    yield from self._merged(ways, node, run)
                case _:
                    for flow in ways.into(node):
                        if flow.id in run.tokens:
                            yield from self._single(ways, node, _take(run, [flow]))
        for play in dict.fromkeys(run.blocks):
            yield from self._in_block(ways, play, run)

    def _single(self, ways: Ways, node: Node, rest: RunPlay) -> Iterator[_Step]:
        """The steps of a node with the token that was taken for it."""
        match node.kind:
            case NodeKind.ACTIVITY:
                yield _Step(node.label, _put(rest, ways.out_of(node)))
            case NodeKind.EXCLUSIVE:
                for flow in ways.out_of(node):
                    yield _Step(None, _put(rest, (flow,)))
                if not ways.out_of(node):
                    yield _Step(None, rest)
            case NodeKind.END:
                yield _Step(None, rest)
            case NodeKind.TERMINATE:
                yield _Step(None, RunPlay())
            case NodeKind.THROW:
                yield _Step(None, _put(rest, ways.out_of(node)), thrown=node.throws)
            case NodeKind.BLOCK:
                for begun in self._entered(node):
                    yield from self._settled(ways, begun, rest, None)
            case _:
                yield _Step(None, _put(rest, ways.out_of(node)))

    def _joined(self, ways: Ways, node: Node, run: RunPlay) -> Iterator[_Step]:
        incoming = ways.into(node)
        if incoming and all(flow.id in run.tokens for flow in incoming):
            yield _Step(None, _put(_take(run, incoming), ways.out_of(node)))

    def _merged(self, ways: Ways, node: Node, run: RunPlay) -> Iterator[_Step]:
        filled = [flow for flow in ways.into(node) if flow.id in run.tokens]
        if not filled:
            return
        names = {flow.id for flow in filled}
        positions: list[tuple[Flow, ...]] = [
            (flow,) for flow in _flows_of(ways) if flow.id in run.tokens and flow.id not in names
        ]
        positions += [ways.all_out_of(ways.nodes[play.node]) for play in run.blocks]
        for position in positions:
            reached = arrivals(ways, position, node)
            if reached and not reached & names:
                return
        rest = _take(run, filled)
        outgoing = ways.out_of(node)
        for size in range(1, len(outgoing) + 1):
            for chosen in combinations(outgoing, size):
                yield _Step(None, _put(rest, chosen))
        if not outgoing:
            yield _Step(None, rest)

    def _entered(self, node: Node) -> Iterator[NodePlay]:
        assert node.block is not None
        repeat = node.block.repeat or _ONCE
        if not repeat.is_parallel:
            if repeat.least == 0:
                yield NodePlay(node.id, ())
            if repeat.most != 0:
                yield from (NodePlay(node.id, (begun,)) for begun in self.begin(node.block.graph))
            return
        most = max(repeat.least, self._max_length)
        for count in range(repeat.least, (most if repeat.most is None else min(most, repeat.most)) + 1):
            for runs in product(self.begin(node.block.graph), repeat=count):
                yield NodePlay(node.id, _sorted(run for run in runs if not run.is_complete))

    def _settled(self, ways: Ways, play: NodePlay, rest: RunPlay, label: str | None) -> Iterator[_Step]:
        """A block after a step in it: it continues, runs again or is complete."""
        node = ways.nodes[play.node]
        assert node.block is not None
        running = tuple(run for run in play.runs if not run.is_complete)
        if running:
            yield _Step(label, _with_block(rest, replace(play, runs=running)))
            return
        repeat = node.block.repeat or _ONCE
        past = play.past + len(play.runs)
        if repeat.is_parallel or past >= repeat.least or not play.runs:
            yield _Step(label, _put(rest, ways.out_of(node)))
        if play.runs and not repeat.is_parallel and (repeat.most is None or past < repeat.most):
            past = min(past, repeat.least) if repeat.most is None else past
            for begun in self.begin(node.block.graph):
                if not begun.is_complete or past < repeat.least:
                    yield from self._settled(ways, replace(play, runs=(begun,), past=past), rest, label)

    def _in_block(self, ways: Ways, play: NodePlay, run: RunPlay) -> Iterator[_Step]:
        node = ways.nodes[play.node]
        block = node.block
        assert block is not None
        blocks = list(run.blocks)
        blocks.remove(play)
        rest = replace(run, blocks=tuple(blocks))
        exits = {leaves.id: leaves for leaves in block.exits}
        for index, inner in enumerate(play.runs):
            others = play.runs[:index] + play.runs[index + 1 :]
            for step in self.steps(block.graph, inner):
                after = replace(play, runs=_sorted((*others, step.after)))
                if step.thrown not in exits:
                    settled = self._settled(ways, after, rest, step.label)
                    yield from (replace(outer, thrown=step.thrown) for outer in settled)
                else:
                    yield from self._left(ways, after, rest, exits[step.thrown])
        for leaves in block.exits:
            if not leaves.is_thrown and leaves.id not in play.taken:
                taken = (*play.taken, *(() if leaves.is_interrupting else (leaves.id,)))
                yield from self._left(ways, replace(play, taken=tuple(sorted(taken))), rest, leaves)

    def _left(self, ways: Ways, play: NodePlay, rest: RunPlay, leaves: Exit) -> Iterator[_Step]:
        after = _put(rest, ways.out_of(ways.nodes[play.node], leaves.id))
        if leaves.is_interrupting:
            yield _Step(None, after)
        else:
            yield from self._settled(ways, play, after, None)


def arrivals(ways: Ways, flows: tuple[Flow, ...], gateway: Node) -> frozenset[str]:
    """Ids of the gateway's incoming flows that a token on one of the given flows can reach around the gateway."""
    reached: set[str] = set()
    seen: set[str] = set()
    waiting = list(flows)
    while waiting:
        flow = waiting.pop()
        if flow.id in seen:
            continue
        seen.add(flow.id)
        if flow.target == gateway.id:
            reached.add(flow.id)
        else:
            waiting.extend(ways.all_out_of(ways.nodes[flow.target]))
    return frozenset(reached)


def _flows_of(ways: Ways) -> Iterator[Flow]:
    for node in ways.nodes.values():
        yield from ways.into(node)


def _take(run: RunPlay, flows: Iterable[Flow]) -> RunPlay:
    tokens = list(run.tokens)
    for flow in flows:
        tokens.remove(flow.id)
    return replace(run, tokens=tuple(tokens))


def _put(run: RunPlay, flows: Iterable[Flow]) -> RunPlay:
    return replace(run, tokens=tuple(sorted((*run.tokens, *(flow.id for flow in flows)))))


def _with_block(run: RunPlay, play: NodePlay) -> RunPlay:
    return replace(run, blocks=_sorted_plays((*run.blocks, play)))


def _sorted(runs: Iterable[RunPlay]) -> tuple[RunPlay, ...]:
    return tuple(sorted(runs, key=repr))


def _sorted_plays(plays: Iterable[NodePlay]) -> tuple[NodePlay, ...]:
    return tuple(sorted(plays, key=repr))
