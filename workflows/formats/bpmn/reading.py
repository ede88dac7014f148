"""Reads BPMN 2.0 XML as a flow graph."""

from __future__ import annotations

from workflows.formats.bpmn.activities import Labels
from workflows.formats.bpmn.diagram import read_diagram
from workflows.formats.bpmn.document import Document
from workflows.formats.bpmn.elements import INTERMEDIATE
from workflows.formats.bpmn.endings import end_at_once
from workflows.formats.bpmn.graphs import GraphReader
from workflows.formats.bpmn.processes import choose_process, note_collaboration, note_origin
from workflows.formats.findings import Findings
from workflows.formats.mapping import instances_problem, unused_keys
from workflows.model import ModelFormat, ReadOptions, WorkflowModel


def read_bpmn(content: bytes, options: ReadOptions) -> WorkflowModel:
    """Read one process of a BPMN 2.0 file as a flow graph.

    Events are emitted by tasks, by call activities whose process is not in the file, and by intermediate events that
    have a name or a mapping. Elements without influence on the order of activities (data, lanes, annotations) are left
    out silently. Elements that matter only beyond the process (message flows) are left out with a notice. A file is
    refused if it has several processes and none is chosen, or if it has elements whose meaning would be lost. The error
    lists all of these.
    """
    findings = Findings()
    document = Document(content, findings)
    note_origin(document, findings)
    process = choose_process(document, options.process, findings)
    note_collaboration(document, findings)
    labels = Labels(mapping=options.mapping)
    if (problem := instances_problem(options.mapping)) is not None:
        findings.refuse("", problem)
    reader = GraphReader(document, labels, findings)
    graph = reader.read_process(process)
    findings.finish()
    _note_unknown_names(document, labels, findings)
    diagram = read_diagram(document, process, reader.events, findings)
    return WorkflowModel(
        name=document.title_of(process) or process.id,
        format=ModelFormat.BPMN,
        source=end_at_once(graph),
        notices=findings.notices,
        diagram=diagram,
    )


def _note_unknown_names(document: Document, labels: Labels, findings: Findings) -> None:
    names = {
        key
        for process in document.processes
        for element in process.descendants()
        if element.is_activity or element.kind in INTERMEDIATE
        for key in (element.id, element.name)
    }
    for notice in unused_keys(labels.mapping, names):
        findings.note(notice.element, notice.message)
