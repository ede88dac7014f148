"""Makes ends immediate: no event can occur between the last activity of a block and its end.

In a flow graph, an activity and the end after it are two steps. Between the two steps, another branch could continue,
or an exit could leave a block in which nothing remains to do. In a process the end follows the activity at once, so the
graph is changed:

- If a block can be left at any time, its ends are removed. An activity without an outgoing flow is an end.
- If the graph has other branches, an activity before a terminate or throwing end is moved out of the block. First the
  other tokens of the block are removed, then the activity occurs. So no other event comes between activity and end.

If an exclusive gateway leads from an activity to ends, the choice among the ends is made before the activity instead. A
gateway that other nodes also reach keeps its flows, unless all of them lead to ends.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from workflows.nets.graph import Block, Exit, Flow, FlowGraph, Node, NodeKind, reached_by_flows
from workflows.nets.translation import is_single

MOST_PAIRS = 2_000
"""Largest number of pairs of an activity and an end in one graph. In larger graphs, ends remain separate steps."""

_TERMINATE = ""
_PLAIN = "#"
_COMPLETING = frozenset({NodeKind.ACTIVITY, NodeKind.SILENT, NodeKind.BLOCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """An activity before an end, which is moved out of its block so that no event can come between activity and end.

    Inside the block, a throw takes the new exit ``exit``, which leads to the activity. After the activity, the flow
    continues as it did after the original exit ``instead``. If ``instead`` is empty, the graph terminates there.
    """

    exit: str
    instead: str
    activity: Node


@dataclass(frozen=True, slots=True)
class _Frame:
    """The properties of a graph or block that decide which of the ends inside it must be immediate.

    Frames are listed from the whole model to the innermost graph.

    Attributes:
        cutting: The interrupting exits of the block that contains the graph.
        is_single: Whether the graph has no concurrent branches.
        is_left: Whether the block can be left at any time.
    """

    cutting: frozenset[str]
    is_single: bool
    is_left: bool = False


def end_at_once(graph: FlowGraph) -> FlowGraph:
    """Return an equivalent graph in which no event can occur between a last activity and the end after it."""
    ended, _ = _end_graph(graph, (_Frame(frozenset(), is_single(graph)),))
    return ended


def _end_graph(graph: FlowGraph, frames: tuple[_Frame, ...]) -> tuple[FlowGraph, list[_Last]]:
    """Return a graph with immediate ends, and the last activities that must be moved out of a surrounding block."""
    outwards: list[_Last] = []
    parts = []
    for node in graph.nodes:
        if node.block is not None:
            part, lasts = _end_block(node, node.block, frames, graph.flows)
            parts.append(part)
            outwards += lasts
        else:
            parts.append(FlowGraph(id=node.id, nodes=(node,)))
    whole = replace(
        graph,
        nodes=tuple(node for part in parts for node in part.nodes),
        flows=(*graph.flows, *(flow for part in parts for flow in part.flows)),
    )
    whole, lasts_of_graph = _Rewriting(whole, frames).finish()
    here = [last for last in lasts_of_graph if last.instead == _TERMINATE]
    return (_wrapped(whole, here) if here else whole), [*outwards, *(last for last in lasts_of_graph if last.instead)]


def _end_block(
    node: Node, block: Block, frames: tuple[_Frame, ...], around: tuple[Flow, ...]
) -> tuple[FlowGraph, list[_Last]]:
    """Return a block node with immediate ends inside, together with the activities that were moved out of the block.

    Also return the last activities that must be moved out of an outer block. ``around`` are the flows of the graph that
    contains the node.
    """
    cutting = frozenset(exit_.id for exit_ in block.exits if exit_.is_interrupting)
    is_left = any(exit_.is_interrupting and not exit_.is_thrown for exit_ in block.exits)
    runs_alone = is_single(block.graph) and not (block.repeat and block.repeat.is_parallel)
    inner, lasts = _end_graph(block.graph, (*frames, _Frame(cutting, runs_alone, is_left)))
    mine = [last for last in lasts if last.instead in cutting]
    exits = (*block.exits, *(Exit(id=last.exit, is_thrown=True) for last in mine))
    following = {flow.exit: flow.target for flow in around if flow.source == node.id} if mine else {}
    flows = []
    for last in mine:
        flows.append(Flow(id=f"{last.exit}-flow", source=node.id, target=last.activity.id, exit=last.exit))
        target = following.get(last.instead)
        if target is not None:
            flows.append(Flow(id=f"{last.exit}-on", source=last.activity.id, target=target))
    changed = replace(node, block=replace(block, graph=inner, exits=exits))
    part = FlowGraph(id=node.id, nodes=(changed, *(last.activity for last in mine)), flows=tuple(flows))
    return part, [last for last in lasts if last.instead not in cutting]


def _wrapped(graph: FlowGraph, lasts: list[_Last]) -> FlowGraph:
    """Return a graph that runs ``graph`` as a block, followed by one of the activities in ``lasts``.

    These are the activities before the terminate ends of ``graph``.
    """
    inner = replace(graph, id=f"{graph.id}#before-last")
    block = Block(graph=inner, exits=tuple(Exit(id=last.exit, is_thrown=True) for last in lasts))
    start = Node(id=f"{graph.id}#last-start", kind=NodeKind.START, described=f"start of {graph.id}")
    node = Node(id=f"{graph.id}#last", kind=NodeKind.BLOCK, block=block, described=f"content of {graph.id}")
    return FlowGraph(
        id=graph.id,
        name=graph.name,
        nodes=(start, node, *(last.activity for last in lasts)),
        flows=(
            Flow(id=f"{start.id}-flow", source=start.id, target=node.id),
            *(Flow(id=f"{last.exit}-flow", source=node.id, target=last.activity.id, exit=last.exit) for last in lasts),
        ),
    )


class _Rewriting:
    """Makes the ends directly after activities immediate in one graph.

    An end that also removes other branches becomes a throw. ``frames`` has the frames of the surrounding graphs, then
    the frame of the graph itself.
    """

    def __init__(self, graph: FlowGraph, frames: tuple[_Frame, ...]) -> None:
        self._graph = graph
        self._nodes = {node.id: node for node in graph.nodes}
        self._leaving: dict[str, list[Flow]] = defaultdict(list)
        self._arriving: dict[str, list[Flow]] = defaultdict(list)
        for flow in graph.flows:
            self._leaving[flow.source].append(flow)
            self._arriving[flow.target].append(flow)
        self._ends = {node.id: end for node in graph.nodes if (end := _end_of(node, frames)) is not None}
        self._join_ends()
        self._own = self._own_gateways() if self._ends else set()

    def finish(self) -> tuple[FlowGraph, list[_Last]]:
        ends_by_activity = {
            activity_id: self._ends_after(activity_id)
            for activity_id in self._nodes
            if self._ends and self._is_activity(activity_id)
        }
        ending = {activity_id: ends for activity_id, ends in ends_by_activity.items() if ends}
        if not self._ends or sum(map(len, ending.values())) > MOST_PAIRS:
            return self._graph, []
        flows = self._kept_flows(set(ending))
        continuing = {flow.source for flow in flows}
        choosing = {
            activity_id for activity_id, ends in ending.items() if ends != [_PLAIN] or activity_id in continuing
        }
        flows = [replace(flow, target=f"{flow.target}#choice") if flow.target in choosing else flow for flow in flows]
        nodes = list(self._graph.nodes)
        lasts: list[_Last] = []
        for activity_id in [activity_id for activity_id in ending if activity_id in choosing]:
            part, behind = self._choice(
                self._nodes[activity_id], ending[activity_id], may_continue=activity_id in continuing
            )
            nodes += part.nodes
            flows += part.flows
            lasts += behind
        return _reached(replace(self._graph, nodes=tuple(nodes), flows=tuple(flows))), lasts

    @staticmethod
    def _choice(activity: Node, ends: list[str], *, may_continue: bool) -> tuple[FlowGraph, list[_Last]]:
        """Return a gateway before an activity that chooses whether the activity is the last one, and which end follows.

        Return the gateway with the nodes and flows after it, and the last activities that must be moved out of a block.
        ``may_continue`` says that the activity may also not be the last one.
        """
        identity, described = activity.id, str(activity)
        gate = Node(id=f"{identity}#choice", kind=NodeKind.EXCLUSIVE, described=described)
        nodes, lasts = [gate], []
        for number, end in enumerate(ends):
            copy = replace(activity, id=f"{identity}#last{number}")
            if end == _PLAIN:
                nodes.append(copy)
                continue
            leaves = f"{identity}#exit{number}"
            nodes.append(Node(id=f"{identity}#throw{number}", kind=NodeKind.THROW, throws=leaves, described=described))
            lasts.append(_Last(exit=leaves, instead=end, activity=copy))
        targets = [node.id for node in nodes[1:]] + ([identity] if may_continue else [])
        flows = tuple(Flow(id=f"{gate.id}-{target}", source=gate.id, target=target) for target in targets)
        return FlowGraph(id=identity, nodes=tuple(nodes), flows=flows), lasts

    def _is_activity(self, node_id: str) -> bool:
        return self._nodes[node_id].kind is NodeKind.ACTIVITY

    def _join_ends(self) -> None:
        """Treat exclusive gateways that lead only to plain ends as plain ends."""
        waiting = [node_id for node_id, end in self._ends.items() if end == _PLAIN]
        while waiting:
            for flow in self._arriving[waiting.pop()]:
                source = flow.source
                is_open = self._nodes[source].kind is NodeKind.EXCLUSIVE and source not in self._ends
                if is_open and all(self._ends.get(other.target) == _PLAIN for other in self._leaving[source]):
                    self._ends[source] = _PLAIN
                    waiting.append(source)

    def _own_gateways(self) -> set[str]:
        """Return the exclusive gateways that are reached only from activities, directly or by other such gateways."""
        gateways = {node.id for node in self._graph.nodes if node.kind is NodeKind.EXCLUSIVE}
        waiting = [
            gateway
            for gateway in gateways
            if any(not (self._is_activity(flow.source) or flow.source in gateways) for flow in self._arriving[gateway])
        ]
        while waiting:
            gateway = waiting.pop()
            if gateway in gateways:
                gateways.discard(gateway)
                waiting += [flow.target for flow in self._leaving[gateway] if flow.target in gateways]
        return gateways

    def _ends_after(self, activity: str) -> list[str]:
        seen: set[str] = set()
        ends: dict[str, None] = {}
        waiting = [activity]
        while waiting:
            for flow in self._leaving[waiting.pop()]:
                if flow.target in self._ends:
                    ends[self._ends[flow.target]] = None
                elif flow.target in self._own and flow.target not in seen:
                    seen.add(flow.target)
                    waiting.append(flow.target)
        return list(ends)

    def _kept_flows(self, ending: set[str]) -> list[Flow]:
        dropped = {flow.id for flow in self._graph.flows if self._is_dropped(flow, ending)}
        waiting = [flow.source for flow in self._graph.flows if flow.id in dropped and flow.source in self._own]
        while waiting:
            node_id = waiting.pop()
            if all(flow.id in dropped for flow in self._leaving[node_id]):
                for flow in self._arriving[node_id]:
                    if flow.id not in dropped:
                        dropped.add(flow.id)
                        if flow.source in self._own:
                            waiting.append(flow.source)
        return [flow for flow in self._graph.flows if flow.id not in dropped]

    def _is_dropped(self, flow: Flow, ending: set[str]) -> bool:
        end = self._ends.get(flow.target)
        if end is None:
            return False
        if flow.source in self._own or flow.source in ending:
            return flow.source not in self._ends
        return end == _PLAIN and self._nodes[flow.source].kind in _COMPLETING


def _end_of(node: Node, frames: tuple[_Frame, ...]) -> str | None:
    """Return the kind of an end node, if no event may come before it after its last activity. Otherwise return None.

    The kind is ``_PLAIN``, ``_TERMINATE``, or the exit that a throw takes.
    """
    is_left = any(frame.is_left for frame in frames)
    if node.kind is NodeKind.END:
        return _PLAIN if is_left else None
    if node.kind is NodeKind.TERMINATE:
        return (_PLAIN if is_left else None) if frames[-1].is_single else _TERMINATE
    if node.kind is not NodeKind.THROW:
        return None
    inside = next((index for index in range(len(frames) - 1, -1, -1) if node.throws in frames[index].cutting), None)
    if inside is None or not any(frame.is_left or not frame.is_single for frame in frames[inside:]):
        return None
    return node.throws


def _reached(graph: FlowGraph) -> FlowGraph:
    reached = reached_by_flows(graph.nodes, graph.flows)
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.id in reached),
        flows=tuple(flow for flow in graph.flows if flow.source in reached),
    )
