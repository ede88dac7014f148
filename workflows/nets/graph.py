"""Flow graphs: the semantics of drawn processes, without the details that only a drawing needs.

Tokens move along flows. A *start* puts one token on its outgoing flow. If a graph has several starts, exactly one of
them puts a token, once. Every other node takes tokens from incoming flows and puts tokens on outgoing flows:

- ``activity``, ``silent``, ``block``, ``end``, ``terminate`` and ``throw`` take one token from any incoming flow, and
  put one token on their only outgoing flow. Without an outgoing flow, the node is an end.
- ``exclusive`` takes one token and puts one token on one of its outgoing flows.
- ``parallel`` waits for a token on each incoming flow, and puts one token on each outgoing flow.
- ``inclusive`` waits until no empty incoming flow can get a token any more. A token elsewhere keeps the gateway waiting
  if it can reach an empty incoming flow without passing the gateway, unless it can also reach a filled one (BPMN 2.0,
  section 13.4.3). Then the gateway takes one token from each filled flow, and puts one token on each flow of any
  non-empty set of outgoing flows. Only paths within the same graph count. A running block counts as a token that may
  leave by any flow of the block.
- ``end`` only takes a token. ``terminate`` ends the graph that contains it at once: all tokens in the graph and in its
  blocks are removed.
- ``throw`` takes the exit ``throws`` of the nearest surrounding block that has this exit.

A node without incoming flows is never active, unless it is a start.

A graph is complete when it has no token. A *block* runs an inner graph, and is complete as soon as this graph is. While
the block runs, it can be left by an *exit*. An interrupting exit removes all tokens of the block and puts one on the
flow of the exit. A non-interrupting exit puts a token on its flow, and the block continues. An exit without a flow puts
no token. Thrown exits are taken by ``throw`` nodes only, any number of times. Other exits can be taken at any time; a
non-interrupting one can be taken once while the block runs.

A block that *repeats* runs its graph several times. Each run has its own tokens, and ``terminate`` ends one run only.
The block is complete when all runs are complete. An interrupting exit removes the tokens of all runs, and a
non-interrupting exit can be taken once during all runs together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class NodeKind(StrEnum):
    """The kind of a node of a flow graph, which determines how the node takes and puts tokens."""

    START = "start"
    END = "end"
    TERMINATE = "terminate"
    THROW = "throw"
    ACTIVITY = "activity"
    SILENT = "silent"
    BLOCK = "block"
    EXCLUSIVE = "exclusive"
    PARALLEL = "parallel"
    INCLUSIVE = "inclusive"


GATEWAYS = frozenset({NodeKind.EXCLUSIVE, NodeKind.PARALLEL, NodeKind.INCLUSIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """An exit of a running block. Its id is unique in the whole model, and flows refer to the exit by this id.

    An interrupting exit ends the block. A thrown exit is taken only by ``throw`` nodes in the block.
    """

    id: str
    name: str = ""
    is_interrupting: bool = True
    is_thrown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The repetition of a block: from ``least`` to ``most`` runs (None: any number), sequential or concurrent."""

    least: int = 1
    most: int | None = None
    is_parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A graph inside a node, with its exits and its repetition."""

    graph: FlowGraph
    exits: tuple[Exit, ...] = ()
    repeat: Repeat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a flow graph.

    Attributes:
        id: Id of the model's element, unique in the whole model. The id of a generated node extends the id of its
            element.
        name: Name in the model, with normalised white space. Gateways mostly have no name.
        label: Event type of an activity; None for other kinds.
        throws: The exit that a ``throw`` node takes.
        described: The element in words for messages, such as ``exclusive gateway 'In stock?' (G_1)``.
    """

    id: str
    kind: NodeKind
    name: str = ""
    label: str | None = None
    block: Block | None = None
    throws: str = ""
    described: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.described or f"{self.kind} {self.name!r} ({self.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow from one node to another. Its id is unique in the whole model.

    ``exit`` is the exit by which the flow leaves a block. If it is empty, the flow leaves when the block is complete.
    """

    id: str
    source: str
    target: str
    exit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """One level of a process as a graph: nodes and flows, with the semantics that this module describes."""

    id: str
    name: str = ""
    nodes: tuple[Node, ...] = ()
    flows: tuple[Flow, ...] = ()


def reached_by_flows(nodes: Iterable[Node], flows: Iterable[Flow]) -> set[str]:
    """Return the ids of all nodes that are reachable from a start, including the starts."""
    following: dict[str, list[str]] = defaultdict(list)
    for flow in flows:
        following[flow.source].append(flow.target)
    waiting = [node.id for node in nodes if node.kind is NodeKind.START]
    reached = set(waiting)
    while waiting:
        for target in following[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached
