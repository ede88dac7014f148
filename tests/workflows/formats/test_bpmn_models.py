"""Whole models: the example, and files of many tools, where the files are present."""

import re
from collections import Counter
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.references.nets import words_of_graph
from tests.references.workflows import enumerate_language
from workflows.errors import ModelRefused
from workflows.formats.bpmn import read_bpmn
from workflows.formats.bpmn.document import Document
from workflows.formats.findings import Findings
from workflows.model import ReadOptions, WorkflowModel
from workflows.nets.folding import fold_graph
from workflows.nets.graph import Flow, FlowGraph, Node
from workflows.order_fulfilment import OrderSettings, order_fulfilment
from workflows.tree import activity_names

MODELS = Path(__file__).resolve().parents[4] / "shared" / "data" / "models"
EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "order.bpmn"
FILES = 84
PROCESSES = 149
REFUSED = {
    ("Reference/C.3.0.bpmn", "waits for 2 tokens"),
    ("Reference/C.3.0.bpmn", "gives 2 tokens"),
    ("Reference/C.6.0.bpmn", "starts compensation"),
    ("Trisotech_Workflow_Modeler_12.6.3/C.3.0-roundtrip.bpmn", "waits for 2 tokens"),
    ("Trisotech_Workflow_Modeler_12.6.3/C.3.0-roundtrip.bpmn", "gives 2 tokens"),
    ("Trisotech_Workflow_Modeler_12.6.3/C.6.0-export.bpmn", "starts compensation"),
    ("Trisotech_Workflow_Modeler_12.6.3/C.6.0-roundtrip.bpmn", "starts compensation"),
}
REASONS = sorted({reason for _, reason in REFUSED})
"""The processes that are not read: they take several tokens at once, or compensate."""


Outcomes: TypeAlias = list[tuple[Path, str, WorkflowModel | ModelRefused]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Every process of every file, or why it is refused."""
    paths = sorted(MODELS.glob("**/*.bpmn"))
    if not paths:
        pytest.skip(f"shared data absent: {MODELS} (issue #5)")
    read: Outcomes = []
    for path in paths:
        content = path.read_bytes()
        for process in Document(content, Findings()).processes:
            if process.has_content:
                try:
                    model: WorkflowModel | ModelRefused = read_bpmn(content, ReadOptions(process=process.id))
                except ModelRefused as refusal:
                    model = refusal
                read.append((path, process.id, model))
    return read


def all_parts(graph: FlowGraph) -> tuple[list[Node], list[Flow]]:
    nodes, flows = list(graph.nodes), list(graph.flows)
    for node in graph.nodes:
        if node.block is not None:
            inner = all_parts(node.block.graph)
            nodes += inner[0]
            flows += inner[1]
    return nodes, flows


def test_the_files_of_many_tools_are_read_or_refused(outcomes: Outcomes) -> None:
    assert len({path for path, _, _ in outcomes}) == FILES
    assert len(outcomes) == PROCESSES
    refused = {
        ("/".join(path.parts[-2:]), reason)
        for path, _, outcome in outcomes
        if isinstance(outcome, ModelRefused)
        for _, message in outcome.problems
        for reason in [next((known for known in REASONS if known in message), message)]
    }
    assert refused == REFUSED


def _said_of_processes(path: Path) -> str:
    """Why a file of several processes is refused, up to the list; else the notice on the one that is read."""
    try:
        model = read_bpmn(path.read_bytes(), ReadOptions())
    except ModelRefused as refused:
        return refused.message.partition(": ")[0]
    return next((notice.message for notice in model.notices if "this process is read" in notice.message), "")


def test_files_of_several_processes_ask_which(outcomes: Outcomes) -> None:
    counts = Counter(path for path, _, _ in outcomes)
    for path, count in counts.items():
        if count > 1:
            said = _said_of_processes(path)
            is_read = "are called by it" in said or "have no activities" in said
            assert is_read or re.fullmatch(rf"the file has {count} processes, (\d+|none) with activities; .*", said), (
                path
            )


def test_what_is_read_is_a_proper_graph(outcomes: Outcomes) -> None:
    for path, process, model in outcomes:
        if isinstance(model, ModelRefused):
            continue
        assert isinstance(model.source, FlowGraph)
        nodes, flows = all_parts(model.source)
        names = [node.id for node in nodes]
        assert len(set(names)) == len(names), (path, process)
        assert len({flow.id for flow in flows}) == len(flows), (path, process)
        shapes = model.diagram.shapes if model.diagram is not None else ()
        drawn = {(shape.element, shape.event) for shape in shapes if shape.event is not None}
        emitting = {(node.id.partition("#")[0], node.label) for node in nodes if node.label is not None}
        assert {entry for entry in drawn - emitting if entry[0] not in str(model.notices)} == set()


def test_every_file_draws_its_process(outcomes: Outcomes) -> None:
    models = [(path, model) for path, _, model in outcomes if isinstance(model, WorkflowModel)]
    drawn = [path for path, model in models if model.diagram is not None]
    assert set(drawn) == {path for path, _ in models}
    assert len(drawn) > 120  # some files have copies of a process, or called ones, that no page shows


def test_every_tool_says_the_same_with_the_reference_models(outcomes: Outcomes) -> None:
    words: dict[str, dict[str, frozenset[tuple[str, ...]]]] = {}
    for path, _, model in outcomes:
        test = path.name.removesuffix(".bpmn").partition("-")[0]
        if isinstance(model, WorkflowModel) and test in ("A.1.0", "A.2.0") and isinstance(model.source, FlowGraph):
            words.setdefault(test, {})["/".join(path.parts[-2:])] = words_of_graph(model.source, 6)
    for test, found in words.items():
        reference = found[f"Reference/{test}.bpmn"]
        assert len(found) >= 5
        assert set(found.values()) == {reference}
    first, second, third = "Task 1", "Task 2", "Task 3"
    assert words["A.1.0"]["Reference/A.1.0.bpmn"] == {(first, second, third)}
    assert words["A.2.0"]["Reference/A.2.0.bpmn"] == {(first, last) for last in (second, third, "Task 4")}


def test_the_order_workflow_as_bpmn_is_the_order_workflow() -> None:
    model = read_bpmn(EXAMPLE.read_bytes(), ReadOptions())
    assert model.name == "order"
    assert model.notices == ()
    assert isinstance(model.source, FlowGraph)
    known = order_fulfilment(OrderSettings(quotes=None))
    tree = fold_graph(model.source)
    assert tree is not None
    assert set(activity_names(tree)) == set(activity_names(known))
    expected = {word for word in enumerate_language(known, 2) if len(word) <= 19}
    assert words_of_graph(model.source, 19) == expected
