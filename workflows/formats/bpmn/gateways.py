"""Connects nodes with their successors. How several outgoing flows are taken depends on the kind of the node.

- Activity or event: all flows without a condition are taken (parallel), and any number of the flows with a condition
  (inclusive). The default flow is taken if and only if no conditional flow is taken. If all flows have a condition and
  none is the default, at least one is taken.
- Exclusive or event-based gateway: exactly one flow is taken.
- Parallel gateway: all flows are taken.
- Inclusive gateway: at least one flow is taken. The default flow is taken if and only if no other flow is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from workflows.formats.bpmn.draft import GraphDraft, Port
from workflows.formats.bpmn.flows import SequenceFlow
from workflows.nets.graph import Node, NodeKind

KIND_OF_GATEWAY = {
    "exclusiveGateway": NodeKind.EXCLUSIVE,
    "eventBasedGateway": NodeKind.EXCLUSIVE,
    "parallelGateway": NodeKind.PARALLEL,
    "inclusiveGateway": NodeKind.INCLUSIVE,
}


def lead_on(draft: GraphDraft, port: Port, flows: Sequence[SequenceFlow], default: str, prefix: str) -> None:
    """Connect an activity, an event or an exit with its successors. Several flows are taken by a generated gateway.

    Without any flow, a start or an exit leads to a generated end. ``default`` is the id of the default flow, or empty.
    ``prefix`` is the beginning of the ids of nodes.
    """
    if not flows:
        if port.exit or port.node.kind is NodeKind.START:
            draft.connect(port, _make(draft, port, NodeKind.END, "end").node.id)
    elif len(flows) == 1:
        draft.connect(port, prefix + flows[0].target, prefix + flows[0].id)
    else:
        _split(draft, port, flows, default, prefix)


def lead_on_from_gateway(
    draft: GraphDraft, gateway: Node, flows: Sequence[SequenceFlow], default: str, prefix: str
) -> None:
    """Connect a gateway with its successors.

    An inclusive gateway with a default flow becomes two gateways. The first chooses between the default flow and the
    second gateway. The second chooses one or more of the other flows.
    """
    port = Port(node=gateway)
    others = [flow for flow in flows if flow.id != default]
    if not flows:
        draft.connect(port, _make(draft, port, NodeKind.END, "end").node.id)
    elif gateway.kind is NodeKind.INCLUSIVE and others and len(others) < len(flows):
        defaults = [flow for flow in flows if flow.id == default]
        choice = _make(draft, port, NodeKind.EXCLUSIVE, "default")
        draft.connect(port, choice.node.id)
        _connect_all(draft, choice, defaults, prefix)
        _choose_any(draft, choice, others, prefix)
    else:
        _connect_all(draft, port, flows, prefix)


def _split(draft: GraphDraft, port: Port, flows: Sequence[SequenceFlow], default: str, prefix: str) -> None:
    defaults = [flow for flow in flows if flow.id == default]
    conditional = [flow for flow in flows if flow.is_conditional and flow.id != default]
    always = [flow for flow in flows if not flow.is_conditional and flow.id != default]
    if not conditional:
        always, defaults = list(flows), []
    start = port
    if always:
        start = _make(draft, port, NodeKind.PARALLEL, "split")
        draft.connect(port, start.node.id)
        _connect_all(draft, start, always, prefix)
    if not conditional:
        return
    if always or defaults:
        choice = _make(draft, port, NodeKind.EXCLUSIVE, "default")
        draft.connect(start, choice.node.id)
        _connect_all(draft, choice, defaults, prefix)
        if not defaults:
            draft.connect(choice, _make(draft, port, NodeKind.END, "none").node.id)
        start = choice
    _choose_any(draft, start, conditional, prefix)


def _choose_any(draft: GraphDraft, port: Port, flows: Sequence[SequenceFlow], prefix: str) -> None:
    if len(flows) > 1:
        choice = _make(draft, port, NodeKind.INCLUSIVE, "choice")
        draft.connect(port, choice.node.id)
        port = choice
    _connect_all(draft, port, flows, prefix)


def _connect_all(draft: GraphDraft, port: Port, flows: Sequence[SequenceFlow], prefix: str) -> None:
    for flow in flows:
        draft.connect(port, prefix + flow.target, prefix + flow.id)


def _make(draft: GraphDraft, port: Port, kind: NodeKind, role: str) -> Port:
    identity = port.exit or port.node.id
    described = f"flows out of {port.node}" if kind is not NodeKind.END else f"end after {port.node}"
    return Port(node=draft.add(Node(id=f"{identity}#{role}", kind=kind, described=described)))
