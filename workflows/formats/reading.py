"""Reads a model file in any of the known forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from workflows.errors import ModelRefused
from workflows.formats.bpmn import read_bpmn
from workflows.formats.findings import FORMS
from workflows.formats.pnml import read_pnml
from workflows.formats.safe_xml import looks_like_xml, root_name
from workflows.formats.tree_form import read_tree
from workflows.model import ModelFormat, ReadOptions, WorkflowModel

_READERS: Mapping[ModelFormat, Callable[[bytes, ReadOptions], WorkflowModel]] = MappingProxyType(
    {ModelFormat.BPMN: read_bpmn, ModelFormat.PNML: read_pnml, ModelFormat.TREE: read_tree}
)


def read_model(content: bytes, options: ReadOptions | None = None, format: ModelFormat | None = None) -> WorkflowModel:
    """Read a model from the bytes of its file. If ``format`` is None, the form is detected.

    Raises:
        ModelRefused: The form is unknown, or the model is invalid. The error lists all problems.
    """
    chosen = format_of(content) if format is None else format
    return _READERS[chosen](content, options if options is not None else ReadOptions())


def format_of(content: bytes) -> ModelFormat:
    """Detect the form of a file. The root name decides for XML, and any other text is read as a process tree."""
    if looks_like_xml(content):
        local = root_name(content).rpartition("}")[2]
        if local == "definitions":
            return ModelFormat.BPMN
        if local == "pnml":
            return ModelFormat.PNML
        raise ModelRefused([("", f"this is XML with the root <{local}>, which is not a known form of model; {FORMS}")])
    if not content.strip():
        raise ModelRefused([("", f"the file is empty; {FORMS}")])
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelRefused([("", f"this is neither XML nor text in UTF-8; {FORMS}")]) from error
    return ModelFormat.TREE
