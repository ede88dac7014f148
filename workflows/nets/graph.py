"""Flow graphs: the semantics of drawn processes, without parts that only the drawing needs.

Tokens run along flows. A *start* puts one token on its outgoing flow; of several starts in a graph exactly one does,
once. Every other node takes tokens from incoming flows and puts tokens on outgoing ones:

- ``activity``, ``silent``, ``block``, ``end``, ``terminate``, ``throw`` take one token from any incoming flow, and put
  one on their only outgoing flow. Without an outgoing flow, the node is an end.
- ``exclusive`` takes one token and puts one on one outgoing flow.
- ``parallel`` waits for a token on each incoming flow and puts one on each outgoing flow.
- ``inclusive`` waits until each incoming flow has a token or can get none any more (BPMN 2.0, section 13.4.3: no token
  elsewhere has a way to an empty incoming flow around the gateway, unless the token also has a way to a filled flow).
  It takes one token from each filled flow, and puts one on each flow of any non-empty set of outgoing flows. Ways are
  those of the same graph; a running block counts as a token that may leave by any flow of the block.
- ``end`` only takes; ``terminate`` ends the graph that contains it, with all tokens in it and in its blocks, at once.
- ``throw`` takes the exit ``throws`` of the nearest block around it that has it.

A node without incoming flows, other than a start, is never active.

A graph is complete when it has no token. A *block* runs an inner graph and is complete as soon as this graph is. While
the block runs, it can be left by an *exit*: an interrupting one takes all tokens of the block and puts one on the
exit's flow; a non-interrupting one puts a token on the exit's flow, and the block continues. An exit without a flow
puts none. Only ``throw`` nodes take thrown exits, any number of times. Other exits can be taken at any time;
non-interrupting ones once while the block runs.

A block that *repeats* runs its graph several times. Each run has its own tokens, and ``terminate`` ends one run. The
block is complete when all runs are; an interrupting exit takes the tokens of all runs, and "once" means once in all
runs together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class NodeKind(StrEnum):
    """The kind of a node: how it handles tokens."""

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
    """An exit of a running block; its id is unique in the whole model, and flows that leave by the exit name it.

    An interrupting exit ends the block; a thrown exit is taken only by ``throw`` nodes in the block.
    """

    id: str
    name: str = ""
    is_interrupting: bool = True
    is_thrown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The repetition of a block: ``least`` to ``most`` runs (None: any number), one after the other or concurrently."""

    least: int = 1
    most: int | None = None
    is_parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A graph within a graph, with its exits and its repetition."""

    graph: FlowGraph
    exits: tuple[Exit, ...] = ()
    repeat: Repeat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a flow graph.

    Attributes:
        id: Id of the model's element, unique in the whole model; ids of generated nodes extend the id of their element.
        name: Name in the model, white space normalised; mostly empty for gateways.
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
    """A flow from one node to another, with an id that is unique in the whole model.

    ``exit`` is the exit by which the flow leaves a block; empty: the flow leaves when the block is complete.
    """

    id: str
    source: str
    target: str
    exit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """One level of a process: nodes and flows with the semantics of this module."""

    id: str
    name: str = ""
    nodes: tuple[Node, ...] = ()
    flows: tuple[Flow, ...] = ()


def reached_by_flows(nodes: Iterable[Node], flows: Iterable[Flow]) -> set[str]:
    """The ids of the nodes to which flows lead from some start, starts included."""
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
