"""Small BPMN files for tests, and their traces."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tests.references.nets import words_of_graph
from workflows.formats.bpmn.reading import read_bpmn
from workflows.model import ReadOptions, WorkflowModel
from workflows.nets.graph import FlowGraph

MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def definitions(*parts: str, namespace: str = MODEL) -> bytes:
    """A file with some parts."""
    return f'<definitions xmlns="{namespace}">{"".join(parts)}</definitions>'.encode()


def process(body: str, arrows: str = "", identity: str = "p", attributes: str = "") -> str:
    """A process of elements and arrows."""
    return f'<process id="{identity}" {attributes}>{body}{flows(arrows)}</process>'


def sub_process(identity: str, body: str, arrows: str = "", attributes: str = "", kind: str = "subProcess") -> str:
    """A sub-process of elements and arrows."""
    return f'<{kind} id="{identity}" {attributes}>{body}{flows(arrows)}</{kind}>'


def tasks(names: str) -> str:
    """A task for each name, which is also its id."""
    return "".join(f'<task id="{name}"/>' for name in names.split())


def flows(arrows: str) -> str:
    """Sequence flows: ``A>B>C D?>E`` are three, the one from D with a condition. Ids are like ``A-B``."""
    written = []
    for chain in arrows.split():
        ends = chain.split(">")
        for source, target in pairwise(ends):
            condition = "<conditionExpression>c</conditionExpression>" if source.endswith("?") else ""
            names = source.rstrip("?"), target.rstrip("?")
            written.append(
                f'<sequenceFlow id="{names[0]}-{names[1]}" sourceRef="{names[0]}" targetRef="{names[1]}">'
                f"{condition}</sequenceFlow>"
            )
    return "".join(written)


def boundary(identity: str, host: str, trigger: str = "<messageEventDefinition/>", attributes: str = "") -> str:
    """An event on the boundary of an activity."""
    return f'<boundaryEvent id="{identity}" attachedToRef="{host}" {attributes}>{trigger}</boundaryEvent>'


def read(*parts: str, process: str | None = None, mapping: Mapping[str, str | None] | None = None) -> WorkflowModel:
    """The model read from a file with some parts."""
    return read_bpmn(definitions(*parts), ReadOptions(process=process, mapping=mapping or {}))


def words_of(model: WorkflowModel, length: int = 6) -> set[str]:
    """The complete traces of a model, events separated by blanks."""
    assert isinstance(model.source, FlowGraph)
    return {" ".join(word) for word in words_of_graph(model.source, length)}


def words(body: str, arrows: str = "", *others: str, length: int = 6) -> set[str]:
    """The complete traces of a process of elements and arrows, with other parts of the file beside it."""
    return words_of(read(process(body, arrows), *others, process="p"), length)
