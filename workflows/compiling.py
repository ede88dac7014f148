"""Compiles a model: derives its net, automaton and constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from constraints import ProcessAutomaton
from workflows.errors import AutomatonTooLarge, UnsoundWorkflow, WorkflowTooLarge
from workflows.language.nets import automaton_of, automaton_of_net
from workflows.language.trees import automaton_of_tree
from workflows.limits import CompileLimits
from workflows.model import ModelNotice, Source, WorkflowModel
from workflows.nets.folding import fold_graph, fold_net
from workflows.nets.graph import FlowGraph
from workflows.nets.markings import explore
from workflows.nets.net import WorkflowNet
from workflows.nets.soundness import check
from workflows.nets.translation import translate
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.drawing import Drawing, lazily
from workflows.relations.extraction import Extraction
from workflows.relations.regular import extraction_of_automaton
from workflows.relations.structural import extraction_of_structure
from workflows.tree import Activity, ProcessTree, parts_of

Progress: TypeAlias = Callable[[int], None]

_MOST_TRAPPED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledWorkflow:
    """A model with its derived net, automaton and constraints.

    ``tree`` is None unless the model is made of blocks; ``net`` is None for trees, and for flow graphs made of blocks.
    ``automaton`` is the minimal automaton of the language; None if it would be too large or the language is not
    regular, with the reason in ``without_automaton``.
    """

    model: WorkflowModel
    tree: ProcessTree | None
    net: WorkflowNet | None
    automaton: ProcessAutomaton | None
    without_automaton: str = ""
    extraction: Extraction


def compile_workflow(
    model: WorkflowModel, limits: CompileLimits | None = None, progress: Progress | None = None
) -> CompiledWorkflow:
    """Derive the net, the automaton and the constraints of a model.

    A model that is made of blocks is compiled block by block, in whichever form it was read. Other models are compiled
    by the automaton of their net, or by the structure of the net if the automaton exceeds the limits. The extraction
    names the method; its warnings name problems of the model and parts that reading left out. ``progress`` is called
    now and then with the number of states, or markings, so far.

    Raises:
        WorkflowTooLarge: The model has more event types or elements than the limits allow.
        UnsoundWorkflow: No trace of the model completes, or a place of it is unbounded.
        ModelRefused: The model has elements that no net can express; every problem is named with its element.
    """
    compile_limits = limits if limits is not None else CompileLimits()
    _check_model_size(model.source, compile_limits)
    tree = _blocks(model.source)
    loosened: tuple[ModelNotice, ...] = ()
    if tree is not None:
        compiled = _from_blocks(model, tree, compile_limits, progress)
    else:
        net, loosened = _net(model.source)
        compiled = _from_net(model, net, compile_limits, progress)
    warnings = [*compiled.extraction.warnings, *map(str, (*loosened, *model.notices))]
    if not compiled.extraction.events:
        warnings.append("the model emits no events: none of its steps is an activity that a mapping leaves a type")
    return replace(compiled, extraction=replace(compiled.extraction, warnings=tuple(warnings)))


def playable(model: WorkflowModel, limits: CompileLimits | None = None) -> ProcessTree | ProcessAutomaton:
    """The form of a model that the simulation plays: the tree if the model is made of blocks, else the automaton."""
    tree = _blocks(model.source)
    return tree if tree is not None else automaton_of_net(_net(model.source)[0], limits or CompileLimits())


def _blocks(source: Source) -> ProcessTree | None:
    match source:
        case FlowGraph():
            return fold_graph(source)
        case WorkflowNet():
            return fold_net(source)
        case _:
            return source


def _net(source: Source) -> tuple[WorkflowNet, tuple[ModelNotice, ...]]:
    """The net of a model, with notices where the net allows more than the model."""
    if isinstance(source, WorkflowNet):
        return source, ()
    assert isinstance(source, FlowGraph)
    translation = translate(source)
    return translation.net, tuple(
        ModelNotice(element=element, message=message) for element, message in translation.notices
    )


def _from_blocks(
    model: WorkflowModel, tree: ProcessTree, limits: CompileLimits, progress: Progress | None
) -> CompiledWorkflow:
    automaton, without = None, ""
    try:
        automaton = automaton_of_tree(tree, limits, progress)
    except AutomatonTooLarge as error:
        without = error.message
    return CompiledWorkflow(
        model=model,
        tree=tree,
        net=model.source if isinstance(model.source, WorkflowNet) else None,
        automaton=automaton,
        without_automaton=without,
        extraction=extraction_of_tree(tree),
    )


def _from_net(
    model: WorkflowModel, net: WorkflowNet, limits: CompileLimits, progress: Progress | None
) -> CompiledWorkflow:
    try:
        automaton, without, warnings = _automaton(net, limits, progress)
        extraction = extraction_of_structure(net) if automaton is None else extraction_of_automaton(automaton)
    except UnsoundWorkflow as error:
        raise _with_trap(error, model.source) from error
    return CompiledWorkflow(
        model=model,
        tree=None,
        net=net,
        automaton=automaton,
        without_automaton=without,
        extraction=_with_origins(replace(extraction, warnings=(*warnings, *extraction.warnings)), model.source),
    )


def _with_trap(error: UnsoundWorkflow, source: Source) -> UnsoundWorkflow:
    """The error, extended by the drawn elements from which no way leads to an end; the net lacks silent elements."""
    trapped = Drawing.of_graph(source).without_way_out() if isinstance(source, FlowGraph) else []
    if not trapped:
        return error
    more = f" and {len(trapped) - _MOST_TRAPPED} more" if len(trapped) > _MOST_TRAPPED else ""
    named = f"{', '.join(trapped[:_MOST_TRAPPED])}{more}"
    message = f"{error.message}; no way leads to an end from {named}: connect one of them to an end event"
    return UnsoundWorkflow(message, **error.details)


def _automaton(
    net: WorkflowNet, limits: CompileLimits, progress: Progress | None
) -> tuple[ProcessAutomaton | None, str, tuple[str, ...]]:
    """The automaton of a net, if any, the reason why it has none (otherwise empty), and warnings about the net."""
    warnings: tuple[str, ...] = ()
    try:
        markings = explore(net, limits, progress)
        warnings = check(markings)
        return automaton_of(markings, limits), "", warnings
    except AutomatonTooLarge as error:
        return None, error.message, warnings


def _with_origins(extraction: Extraction, source: Source) -> Extraction:
    def draw() -> Drawing:
        return Drawing.of_graph(source) if isinstance(source, FlowGraph) else Drawing.of_net(_net(source)[0])

    return replace(extraction, origins=lazily(draw, extraction))


def _check_model_size(source: Source, limits: CompileLimits) -> None:
    """Reject a model with too many elements or event types, in time and memory that are linear in the limits."""
    types: set[str] = set()
    for count, label in enumerate(_labels(source), 1):
        if count > limits.max_elements:
            raise WorkflowTooLarge.beyond("max_elements", limits.max_elements, "elements (activities, gateways, steps)")
        if label is not None:
            types.add(label)
            if len(types) > limits.max_event_types:
                raise WorkflowTooLarge.beyond("max_event_types", limits.max_event_types, "event types")


def _labels(source: Source) -> Iterator[str | None]:
    """The event type of each element; None for an element without a type."""
    match source:
        case FlowGraph():
            for node in source.nodes:
                yield node.label
                if node.block is not None:
                    yield from _labels(node.block.graph)
        case WorkflowNet():
            yield from (None for _ in source.places)
            yield from (transition.label for transition in source.transitions)
        case _:
            waiting: list[ProcessTree] = [source]
            while waiting:
                block = waiting.pop()
                yield block.name if isinstance(block, Activity) else None
                waiting.extend(parts_of(block))
