"""The workflow of a constraint set in a document: its name and version, and its automaton as compressed arrays.

``{"name": "order", "version": 3, "constraints": [..], "end": [..], "automaton": {"letters": [..], "states": n, "table":
.., "accepting": ..}}``. The arrays are compressed by zlib and written in base64: the table as little-endian int32 with
one row for each state, and ``accepting`` with one byte for each state. Reading unpacks at most the size that ``states``
and ``letters`` imply.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from constraints.documents.name_form import Misread, PlacedProblem, checked_type, excerpt, whole_number
from constraints.model import Process
from constraints.process.automaton import ProcessAutomaton

MAX_STATES = 100_000
MAX_LETTERS = 2_000
MAX_CELLS = 20_000_000
MAX_NAME = 200
MAX_VERSION = 1_000_000_000

_NAME, _VERSION, _AUTOMATON = "name", "version", "automaton"
_LISTS = ("constraints", "end")
_MEMBERS = (_NAME, _VERSION, *_LISTS, _AUTOMATON)
_AUTOMATON_MEMBERS = ("letters", "states", "table", "accepting")


@dataclass(frozen=True, slots=True)
class WorkflowForm:
    """A workflow as read from a document. ``constraints`` and ``end`` are lists of entries that are not parsed yet.

    ``process`` has the name, the version and the automaton, but no constraints yet.
    """

    process: Process
    constraints: list[object]
    end: list[object]


def read_workflow(value: object, problems: list[PlacedProblem]) -> WorkflowForm | None:
    """Read a workflow.

    If there are problems, they are added with their places to ``problems``, and the result is None.
    """
    if not isinstance(value, Mapping):
        form = '{"name": "order", "version": 1, "constraints": [], "end": []}'
        problems.append(((), f"a workflow is a mapping such as {form}; got {excerpt(value)}"))
        return None
    workflow_problems: list[PlacedProblem] = [
        ((str(key),), f"{excerpt(key)} is not a member of a workflow; use one of {', '.join(_MEMBERS)}")
        for key in value
        if key not in _MEMBERS
    ]
    name, version = _name(value.get(_NAME), workflow_problems), whole_number(value.get(_VERSION, 1))
    if version is None or not 1 <= version <= MAX_VERSION:
        workflow_problems.append(((_VERSION,), f"a version is a number from 1 on; got {excerpt(value.get(_VERSION))}"))
    lists = {key: value.get(key, []) for key in _LISTS}
    workflow_problems += [
        ((key,), f"{key} is a list; got {excerpt(entries)}")
        for key, entries in lists.items()
        if type(entries) is not list
    ]
    automaton = None
    if value.get(_AUTOMATON) is not None:
        try:
            automaton = _read_automaton(value[_AUTOMATON])
        except Misread as problem:
            workflow_problems.append(((_AUTOMATON,), str(problem)))
    problems += workflow_problems
    if workflow_problems or version is None:
        return None
    return WorkflowForm(
        Process(workflow=name, version=version, automaton=automaton), lists["constraints"], lists["end"]
    )


def written_automaton(automaton: ProcessAutomaton) -> dict[str, object]:
    """Return an automaton as plain JSON values that ``read_workflow`` reads."""
    return {
        "letters": list(automaton.letters),
        "states": len(automaton),
        "table": _packed(automaton.table.astype("<i4").tobytes()),
        "accepting": _packed(automaton.accepting.astype(np.uint8).tobytes()),
    }


def _name(value: object, problems: list[PlacedProblem]) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= MAX_NAME:
        return value
    problems.append(((_NAME,), f"the name of a workflow is a text of 1 to {MAX_NAME} characters; got {excerpt(value)}"))
    return ""


def _read_automaton(value: object) -> ProcessAutomaton:
    """Read an automaton from its arrays.

    Inconsistent arrays, and states from which no trace can be completed, are rejected.
    """
    if not isinstance(value, Mapping) or set(value) != set(_AUTOMATON_MEMBERS):
        raise Misread(f"an automaton is a mapping of {', '.join(_AUTOMATON_MEMBERS)}; got {excerpt(value)}")
    letters, states = _letters(value["letters"]), whole_number(value["states"])
    if states is None or not 1 <= states <= MAX_STATES:
        raise Misread(f"states is a number from 1 to {MAX_STATES}; got {excerpt(value['states'])}")
    if states * len(letters) > MAX_CELLS:
        raise Misread(
            f"a table of {states} states and {len(letters)} letters has more than {MAX_CELLS} cells; "
            "follow the workflow by its constraints, without automaton"
        )
    table = np.frombuffer(_unpacked("table", value["table"], 4 * states * len(letters)), "<i4")
    accepting = np.frombuffer(_unpacked("accepting", value["accepting"], states), np.uint8)
    if accepting.max() > 1:
        raise Misread("accepting holds 0 and 1, one byte for each state; it has other numbers")
    try:
        automaton = ProcessAutomaton(letters, table.reshape(states, len(letters)), accepting.astype(np.bool_))
    except ValueError as error:
        raise Misread(str(error)) from None
    stuck = np.flatnonzero(automaton.distances(automaton.accepting) < 0)
    if len(stuck):
        raise Misread(f"no trace is completed from state {stuck[0]} of the automaton; leave such states out")
    return automaton


def _letters(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_LETTERS:
        raise Misread(f"letters is a list of at most {MAX_LETTERS} event types; got {excerpt(value)}")
    letters = [checked_type(name) for name in value]
    if letters != sorted(set(letters)):
        raise Misread("letters are sorted, each once")
    return tuple(letters)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def _unpacked(key: str, value: object, size: int) -> bytes:
    if not isinstance(value, str):
        raise Misread(f"{key} is a text in base64; got {excerpt(value)}")
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(value, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise Misread(f"{key} is base64 of zlib; it cannot be unpacked: {error}") from None
    if len(content) != size or not reader.eof:
        raise Misread(f"{key} does not have the {size} bytes that states and letters require")
    return content
