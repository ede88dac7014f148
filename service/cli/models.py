"""Model files, read for commands."""

from __future__ import annotations

from pathlib import Path

from service.cli.inputs import read_text, reason_of
from service.errors import FileUnreadable
from workflows import ReadOptions, WorkflowModel, read_mapping, read_model

MAX_MODEL_BYTES = 64_000_000


def read_model_file(path: Path, map_file: Path | None = None, process: str | None = None) -> WorkflowModel:
    """The model of a BPMN, PNML or YAML file; ``map_file`` maps its tasks to event types, ``process`` is an id."""
    mapping = read_mapping(read_text(map_file)) if map_file is not None else {}
    return read_model(read_content(path), ReadOptions(process=process, mapping=mapping))


def read_content(path: Path) -> bytes:
    """The bytes of a model file; raises ``FileUnreadable`` if it is too large for a model."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_MODEL_BYTES + 1)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {reason_of(error)}", file=str(path)) from error
    if len(content) > MAX_MODEL_BYTES:
        raise FileUnreadable(f"{path} has more than {MAX_MODEL_BYTES} bytes, more than any model", file=str(path))
    return content
