"""What commands do with a model file: read it."""

from __future__ import annotations

from pathlib import Path

from service.cli.inputs import read_text, reason_of
from service.errors import FileUnreadable
from workflows import ReadOptions, WorkflowModel, read_mapping, read_model

MAX_MODEL_BYTES = 64_000_000


def read_model_file(path: Path, map_file: Path | None = None, process: str | None = None) -> WorkflowModel:
    """The model of a BPMN, PNML or YAML file.

    Args:
        path: The file.
        map_file: The file that maps its tasks to event types, YAML or JSON.
        process: Id of the process that is meant, where the file has several.

    Raises:
        FileUnreadable: A file cannot be read, or has more bytes than any model.
        ModelRefused: The model or the mapping cannot be read; every problem is named with its element.
    """
    mapping = read_mapping(read_text(map_file)) if map_file is not None else {}
    return read_model(read_content(path), ReadOptions(process=process, mapping=mapping))


def read_content(path: Path) -> bytes:
    """The bytes of a model file.

    Raises:
        FileUnreadable: It cannot be read, or has more bytes than any model.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_MODEL_BYTES + 1)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {reason_of(error)}", file=str(path)) from error
    if len(content) > MAX_MODEL_BYTES:
        raise FileUnreadable(f"{path} has more than {MAX_MODEL_BYTES} bytes, more than any model", file=str(path))
    return content
