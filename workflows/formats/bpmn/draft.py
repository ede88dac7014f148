"""Builds flow graphs, within limits of their size."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.formats.findings import Findings
from workflows.nets.graph import Flow, FlowGraph, Node, NodeKind, reached_by_flows

MOST_NODES = 20_000
MOST_STEPS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """The origin of flows in a flow graph: a node, or one of the exits of a block."""

    node: Node
    exit: str = ""


class GraphDraft:
    """A flow graph under construction. Each added node counts toward the budget of the model.

    Ids of generated nodes and flows extend the id of an element by ``#``, which no valid id in a file contains.
    """

    def __init__(self, identity: str, name: str, budget: Budget) -> None:
        self.identity = identity
        self.name = name
        self.budget = budget
        self._nodes: dict[str, Node] = {}
        self._flows: list[Flow] = []

    def add(self, node: Node) -> Node:
        self.budget.spend(node.id)
        self._nodes[node.id] = node
        return node

    def connect(self, port: Port, target: str, flow: str = "") -> None:
        """Add a flow from a port to a node. ``flow`` is the id of the drawn flow, or empty to generate an id."""
        source = port.node.id
        self.budget.work(source)
        generated_id = f"{port.exit or source}#flow{len(self._flows)}"
        self._flows.append(Flow(id=flow or generated_id, source=source, target=target, exit=port.exit))

    def finish(self, findings: Findings) -> FlowGraph:
        """Return the graph without its unreachable nodes. Each unreachable node that is drawn gets a notice.

        Flows to missing nodes are left out, because the reader has already refused these nodes. A parallel gateway that
        waits for a flow from an unreachable node is refused.
        """
        self._flows = [flow for flow in self._flows if flow.target in self._nodes]
        reached = reached_by_flows(self._nodes.values(), self._flows)
        for node in self._nodes.values():
            if node.id not in reached and "#" not in node.id:
                findings.note(node.id, f"nothing leads to {node}, so it never happens and is left out")
        for flow in self._flows:
            target = self._nodes[flow.target]
            if flow.source not in reached and flow.target in reached and target.kind is NodeKind.PARALLEL:
                findings.refuse(
                    target.id,
                    f"{target} waits for flow {flow.id} from {self._nodes[flow.source]}, to which nothing leads; "
                    "connect its source or remove the flow",
                )
        return FlowGraph(
            id=self.identity,
            name=self.name,
            nodes=tuple(node for node in self._nodes.values() if node.id in reached),
            flows=tuple(flow for flow in self._flows if flow.source in reached),
        )


class Budget:
    """Limits the size of a model and the work to read it.

    Limits are needed even for small files, because processes that call each other can multiply the number of nodes.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._nodes = 0
        self._steps = 0

    def work(self, element: str) -> None:
        """Count one step of reading. Beyond ``MOST_STEPS``, raise ``ModelRefused``, which names the ``element``."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise self._findings.refusal(element, "processes call each other too many times to be read")

    def spend(self, element: str) -> None:
        """Count one node of the model. Beyond ``MOST_NODES``, raise ``ModelRefused``, which names the ``element``."""
        self.work(element)
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise self._findings.refusal(
                element, f"the process has more than {MOST_NODES:,} elements, called ones included"
            )
