"""Compiles a model: derives its net, its automaton and its constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from constraints import ProcessAutomaton
from workflows.errors import AutomatonTooLarge, UnsoundWorkflow, WorkflowTooLarge
from workflows.language.nets import automaton_of
from workflows.language.trees import automaton_of_tree
from workflows.limits import CompileLimits
from workflows.model import ModelNotice, Source, WorkflowModel
from workflows.nets.folding import fold_graph, fold_net
from workflows.nets.graph import FlowGraph
from workflows.nets.markings import Markings, explore
from workflows.nets.net import WorkflowNet
from workflows.nets.soundness import check
from workflows.nets.translation import Translation, translate
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

    Attributes:
        tree: The process tree; None unless the model consists of blocks.
        net: The workflow net; None for a tree, and for a flow graph that consists of blocks.
        automaton: The minimal automaton of the language; None if it is too large or does not exist.
        without_automaton: The reason why the model has no automaton; empty if it has one.
        extraction: The constraints, with the method by which they were found and with warnings.
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

    A model that consists of blocks is compiled block by block, in whichever form it was read. Any other model is
    compiled by the automaton of its net. If the automaton exceeds the limits, or if the net mixes concurrent runs of a
    sub-process, the structure of the net is used instead.

    The extraction names the method. Its warnings name problems of the model, and parts that the reader left out.
    ``progress`` is called from time to time with the number of states or markings so far.

    Raises:
        WorkflowTooLarge: The model has more event types or elements than the limits allow.
        UnsoundWorkflow: No trace of the model completes, or a place of the model is unbounded.
        ModelRefused: The model has elements that no net can express. Every problem is listed with its element.
    """
    compile_limits = limits if limits is not None else CompileLimits()
    _check_model_size(model.source, compile_limits)
    tree = _blocks(model.source)
    if tree is not None:
        compiled = _from_blocks(model, tree, compile_limits, progress)
    else:
        compiled = _from_net(model, _translation(model.source), compile_limits, progress)
    warnings = [*compiled.extraction.warnings, *map(str, model.notices)]
    if not compiled.extraction.events:
        warnings.append("the model emits no events: none of its steps is an activity that a mapping leaves a type")
    return replace(compiled, extraction=replace(compiled.extraction, warnings=tuple(warnings)))


def playable(model: WorkflowModel, limits: CompileLimits | None = None) -> ProcessTree | ProcessAutomaton:
    """Return the form of a model that can be simulated: its process tree if it consists of blocks, else its automaton.

    Raises ``AutomatonTooLarge`` if the model has neither.
    """
    tree = _blocks(model.source)
    if tree is not None:
        return tree
    some_limits = limits or CompileLimits()
    translation = _translation(model.source)
    markings = explore(translation.net, some_limits)
    mixed = _mixed_runs(translation, markings)
    if mixed:
        raise AutomatonTooLarge(mixed)
    return automaton_of(markings, some_limits)


def _blocks(source: Source) -> ProcessTree | None:
    match source:
        case FlowGraph():
            return fold_graph(source)
        case WorkflowNet():
            return fold_net(source)
        case _:
            return source


def _translation(source: Source) -> Translation:
    if isinstance(source, WorkflowNet):
        return Translation(net=source)
    assert isinstance(source, FlowGraph)
    return translate(source)


def _mixed_runs(translation: Translation, markings: Markings) -> str:
    """Return the reason why the net of a flow graph may lack traces of the graph. Return an empty text if it has all.

    The reason is a block with concurrent runs whose tokens can mix in the net.
    """
    nodes = [each.node for each in translation.counters if each.is_mixing and markings.has_two(each.place)]
    return (
        f"{nodes[0]} can be entered again while it runs, and an automaton cannot keep its runs apart" if nodes else ""
    )


def _joined_runs(translation: Translation, markings: Markings) -> list[str]:
    nodes = [str(each.node) for each in translation.counters if markings.has_two(each.place)]
    message = "can be entered again while it runs; read as if branches of different runs could meet"
    return [f"{node} {message}" for node in dict.fromkeys(nodes)]


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
    model: WorkflowModel, translation: Translation, limits: CompileLimits, progress: Progress | None
) -> CompiledWorkflow:
    net = translation.net
    try:
        automaton, without, warnings = _automaton(translation, limits, progress)
        extraction = extraction_of_structure(net) if automaton is None else extraction_of_automaton(automaton)
    except UnsoundWorkflow as error:
        raise _with_trap(error, model.source) from error
    loosened = [str(ModelNotice(element=element, message=message)) for element, message in translation.notices]
    extraction = replace(extraction, warnings=(*warnings, *extraction.warnings, *loosened))
    return CompiledWorkflow(
        model=model,
        tree=None,
        net=net,
        automaton=automaton,
        without_automaton=without,
        extraction=_with_origins(extraction, model.source),
    )


def _with_trap(error: UnsoundWorkflow, source: Source) -> UnsoundWorkflow:
    """Return the error with an addition: the elements of the drawing from which no path leads to an end.

    The error itself cannot name all of them, because the net lacks the silent elements of the drawing.
    """
    trapped = Drawing.of_graph(source).without_way_out() if isinstance(source, FlowGraph) else []
    if not trapped:
        return error
    more = f" and {len(trapped) - _MOST_TRAPPED} more" if len(trapped) > _MOST_TRAPPED else ""
    named = f"{', '.join(trapped[:_MOST_TRAPPED])}{more}"
    message = f"{error.message}; no way leads to an end from {named}: connect one of them to an end event"
    return UnsoundWorkflow(message, **error.details)


def _automaton(
    translation: Translation, limits: CompileLimits, progress: Progress | None
) -> tuple[ProcessAutomaton | None, str, tuple[str, ...]]:
    """Return the automaton of a net, the reason if there is none, and warnings."""
    warnings: tuple[str, ...] = ()
    try:
        markings = explore(translation.net, limits, progress)
        mixed = _mixed_runs(translation, markings)
        if mixed:
            return None, mixed, (mixed,)
        warnings = (*check(markings), *_joined_runs(translation, markings))
        return automaton_of(markings, limits), "", warnings
    except AutomatonTooLarge as error:
        return None, error.message, warnings


def _with_origins(extraction: Extraction, source: Source) -> Extraction:
    def draw() -> Drawing:
        return Drawing.of_graph(source) if isinstance(source, FlowGraph) else Drawing.of_net(_translation(source).net)

    return replace(extraction, origins=lazily(draw, extraction))


def _check_model_size(source: Source, limits: CompileLimits) -> None:
    types: set[str] = set()
    for count, label in enumerate(_labels(source), 1):
        if count > limits.max_elements:
            raise WorkflowTooLarge.beyond("max_elements", limits.max_elements, "elements (activities, gateways, steps)")
        if label is not None:
            types.add(label)
            if len(types) > limits.max_event_types:
                raise WorkflowTooLarge.beyond("max_event_types", limits.max_event_types, "event types")


def _labels(source: Source) -> Iterator[str | None]:
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
