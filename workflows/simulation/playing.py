"""Selects the form of a model that the simulation plays."""

from __future__ import annotations

from constraints import ProcessAutomaton
from workflows.language.nets import automaton_of_net
from workflows.limits import CompileLimits
from workflows.model import WorkflowModel
from workflows.nets.folding import fold_graph, fold_net
from workflows.nets.graph import FlowGraph
from workflows.nets.net import WorkflowNet
from workflows.nets.translation import to_net
from workflows.tree import ProcessTree


def playable(model: WorkflowModel, limits: CompileLimits | None = None) -> ProcessTree | ProcessAutomaton:
    """The model as a tree if it is made of blocks, otherwise its automaton."""
    source = model.source
    if not isinstance(source, FlowGraph | WorkflowNet):
        return source
    tree = fold_graph(source) if isinstance(source, FlowGraph) else fold_net(source)
    if tree is not None:
        return tree
    net = to_net(source) if isinstance(source, FlowGraph) else source
    return automaton_of_net(net, limits if limits is not None else CompileLimits())
