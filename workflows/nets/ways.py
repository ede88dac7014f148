"""Finds the predecessors and successors of nodes in a flow graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from workflows.errors import ModelRefused
from workflows.nets.graph import GATEWAYS, Exit, Flow, FlowGraph, Node, NodeKind


class Ways:
    """The nodes and flows of one graph, indexed by node. A block counts as a single node.

    A graph is refused if a flow leads from or to a node outside the graph, or if several flows leave the same exit or
    the same node, unless the node is a gateway.
    """

    def __init__(self, graph: FlowGraph) -> None:
        self.nodes = {node.id: node for node in graph.nodes}
        self._outgoing: dict[tuple[str, str], list[Flow]] = defaultdict(list)
        self._incoming: dict[str, list[Flow]] = defaultdict(list)
        for flow in graph.flows:
            self._outgoing[flow.source, flow.exit].append(flow)
            self._incoming[flow.target].append(flow)
        problems = [
            (flow.id, f"leads from {flow.source!r} to {flow.target!r}; both have to be nodes of graph {graph.id!r}")
            for flow in graph.flows
            if flow.source not in self.nodes or flow.target not in self.nodes
        ]
        problems += [
            (source, f"{len(flows)} flows leave {leaves or 'it'}; at most one may: use a gateway")
            for (source, leaves), flows in self._outgoing.items()
            if len(flows) > 1 and source in self.nodes and self.nodes[source].kind not in GATEWAYS
        ]
        if problems:
            raise ModelRefused(problems)

    @property
    def starts(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes.values() if node.kind is NodeKind.START)

    def into(self, node: Node) -> tuple[Flow, ...]:
        return tuple(self._incoming.get(node.id, ()))

    def out_of(self, node: Node, leaves: str = "") -> tuple[Flow, ...]:
        """Return the outgoing flows of a node: those taken when the node is done, or those of its exit ``leaves``."""
        return tuple(self._outgoing.get((node.id, leaves), ()))

    def all_out_of(self, node: Node) -> tuple[Flow, ...]:
        """Return the outgoing flows of a node and of all its exits."""
        exits = node.block.exits if node.block else ()
        return self.out_of(node) + tuple(flow for leaves in exits for flow in self.out_of(node, leaves.id))

    def reached(self) -> tuple[Node, ...]:
        """Return the nodes that are reachable from a start, in the order of the graph, without the starts."""
        seen: set[str] = set()
        waiting = [flow.target for start in self.starts for flow in self.out_of(start)]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(flow.target for flow in self.all_out_of(self.nodes[name]))
        return tuple(node for node in self.nodes.values() if node.id in seen)

    def heading_for(self, gateway: Node) -> dict[str, frozenset[str]]:
        """Return, for each flow, the incoming flows of a gateway that a token on the flow can reach.

        Paths through the gateway itself do not count.
        """
        heading: dict[str, set[str]] = defaultdict(set)
        for incoming in self.into(gateway):
            waiting = [incoming]
            while waiting:
                flow = waiting.pop()
                if incoming.id in heading[flow.id]:
                    continue
                heading[flow.id].add(incoming.id)
                if flow.source != gateway.id:
                    waiting.extend(self._incoming.get(flow.source, ()))
        return {flow: frozenset(reached) for flow, reached in heading.items()}


def iterate_nodes(graph: FlowGraph) -> Iterator[Node]:
    """Yield all nodes of a graph and of the blocks in it."""
    for node in graph.nodes:
        yield node
        if node.block:
            yield from iterate_nodes(node.block.graph)


def thrown_in(graph: FlowGraph) -> frozenset[str]:
    """Return the ids of all exits to which some node of a graph, or of a block in it, throws."""
    return frozenset(node.throws for node in iterate_nodes(graph) if node.kind is NodeKind.THROW)


def find_exit(blocks: tuple[Node, ...], exit_id: str) -> tuple[Node, Exit] | None:
    """Return the exit with the id ``exit_id`` and the innermost block that has it. None if no block has it.

    The first of ``blocks`` is the outermost.
    """
    for node in reversed(blocks):
        for leaves in node.block.exits if node.block else ():
            if leaves.id == exit_id:
                return node, leaves
    return None
