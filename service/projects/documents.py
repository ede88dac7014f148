"""The documents of a project, read from a folder and checked. Each document records its file and lines for errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import yaml

from service.errors import ProjectRefused
from service.runs import LISTS
from shards import DOCUMENT_KINDS
from streams import UnreadableText, composed, decoded_text, did_you_mean, indefinite, line_of, listed, plain_value

_SUFFIXES = (".yaml", ".yml", ".json")
_REFERENCES = ("text_file", "model_file", "schema_file")
_MOST_BYTES = 16_000_000
_COMPACT = (",", ":")
_DURATION = "A duration"  # how the description of durations begins in the schema
_EXAMPLE = re.compile("such as [0-9]+ [a-z]+")
_TYPES: Mapping[str, str] = {
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
_PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"|~|null|Null|NULL"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
)
"""The types of unquoted scalars in YAML 1.2. All other scalars are text, such as ``on`` and ``2026-01-01``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A resource as written in a file. ``line`` is the document's first line, ``lines`` the line of each member."""

    kind: str
    name: str
    body: Mapping[str, Any]
    file: Path
    line: int
    lines: Mapping[str, int]

    def place(self, member: str = "") -> str:
        """Return the file and line of a member, such as ``patterns.yaml:12``.

        Without ``member``, it is the document's line.
        """
        return f"{self.file}:{self.lines.get(member, self.line)}"

    def refuse(self, message: str, member: str = "") -> ProjectRefused:
        """Return an error about a member or about the document, for the caller to raise."""
        return ProjectRefused.of([f"{self.place(member)}: {message}"])

    def path(self, member: str, folder: Path) -> Path:
        """Return the path of the file that a member names.

        Refused if the file does not exist or is outside the project.
        """
        path = (self.file.parent / str(self.body[member])).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise self.refuse(f"{member}: {self.body[member]} is outside the project", member)
        if not path.is_file():
            raise self.refuse(f"{member}: {self.body[member]} cannot be read: No such file or directory", member)
        return path

    def beside(self, member: str, folder: Path) -> bytes:
        """Read the file that a member names. Refused if it cannot be read or is outside the project."""
        try:
            return self.path(member, folder).read_bytes()
        except OSError as error:
            raise self.refuse(f"{member}: {self.body[member]} cannot be read: {error.strerror}", member) from None

    def own_or_beside(self, member: str, what: str, folder: Path) -> Any:
        """Return the value of ``member``, or the text of the file that the member ``<member>_file`` names.

        Refused unless the document has exactly one of these members. ``what`` names the resource in the error.
        """
        file = f"{member}_file"
        if (member in self.body) == (file in self.body):
            raise self.refuse(f"{what} has either {member} or {file}")
        try:
            return self.body[member] if member in self.body else self.beside(file, folder).decode()
        except UnicodeDecodeError:
            raise self.refuse(f"{self.body[file]} is not a text in UTF-8", file) from None


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document."""
    schema: dict[str, Any] = orjson.loads(files("service.projects").joinpath("document.schema.json").read_bytes())
    shared = schema["$defs"].pop("operator")["properties"]
    for kind in DOCUMENT_KINDS:
        schema["properties"]["kind"]["enum"].insert(-2, kind.name)
        of_kind = {"if": {"properties": {"kind": {"const": kind.name}}}, "then": {"$ref": f"#/$defs/{kind.name}"}}
        schema["allOf"].append(of_kind)
        schema["$defs"][kind.name] = _with_shared(kind.schema, shared)
    lists = schema["$defs"]["test"]["properties"]["expect"]["properties"]
    lists |= {name: {"$ref": "#/$defs/lines"} for name in LISTS}
    return schema


def _with_shared(kind_schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    members = {**shared, **kind_schema["properties"]}
    if "text" in members:
        members["text_file"] = {"type": "string", "description": "Instead of the text: a file beside this one."}
    required = [name for name in kind_schema["required"] if name != "text"]
    described = {name: kind_schema[name] for name in ("description",) if name in kind_schema}
    return {**described, "required": required, "properties": members}


def read_project(folder: Path) -> list[Document]:
    """Read all documents below a folder, in order of file and line. Skip files to which documents refer."""
    if not folder.is_dir():
        raise ProjectRefused.of([f"{folder} is not a folder; a project is a folder of documents"])
    by_path: dict[Path, list[Document] | ProjectRefused] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file()):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            by_path[path] = read_file(path)
    parts = {
        path for documents in by_path.values() if isinstance(documents, list) for path in _referenced_files(documents)
    }
    problems: list[str] = []
    documents: list[Document] = []
    for path, parsed in by_path.items():
        if path.resolve() in parts:
            continue
        if isinstance(parsed, ProjectRefused):
            problems += parsed.problems
        else:
            documents += parsed
            problems += [problem for document in parsed for problem in _problems(document)]
    problems += _repeated(documents)
    if not documents and not problems:
        problems.append(
            f"{folder} has no documents: no file {', '.join(_SUFFIXES)} with kind and name. To delete all resources of "
            "a project, leave one document, {kind: project, name: NAME}"
        )
    if problems:
        raise ProjectRefused.of(problems)
    return documents


def read_file(path: Path) -> list[Document] | ProjectRefused:
    """Read the documents of a file. The error is returned, not raised, if the file is unreadable or invalid."""
    try:
        return list(_documents(path))
    except ProjectRefused as error:
        return error
    except OSError as error:
        return ProjectRefused.of([f"{path} cannot be read: {error.strerror}"])
    except UnreadableText as error:
        return ProjectRefused.of([f"{path}{f':{line}' if line else ''}: {what}" for line, what in error.problems])


def _documents(path: Path) -> Iterator[Document]:
    for node in composed(decoded_text(path.read_bytes(), _MOST_BYTES)):
        line = line_of(node) or 1
        if not isinstance(node, yaml.MappingNode):
            raise ProjectRefused.of([f"{path}:{line}: a document is a mapping with kind and name"])
        body = plain_value(node, _scalar)
        lines = {key.value: line_of(key) or line for key, _ in node.value}
        if missing := [member for member in ("kind", "name") if member not in body]:
            raise ProjectRefused.of(
                [f"{path}:{line}: a document has kind and name; it has no {' and no '.join(missing)}"]
            )
        empty = [member for member in ("kind", "name") if not isinstance(body[member], str) or not body[member]]
        if empty:
            raise ProjectRefused.of([f"{path}:{line}: {' and '.join(empty)} must be a text that is not empty"])
        kind, name = body.pop("kind"), body.pop("name")
        yield Document(kind=kind, name=name, body=body, file=path, line=line, lines=lines)


def _scalar(node: yaml.ScalarNode) -> object:
    if node.style:  # a quoted scalar or a block
        return node.value
    scalar = next((read(node.value) for form, read in _PLAIN if form.fullmatch(node.value)), node.value)
    if isinstance(scalar, float) and math.isinf(scalar):
        raise UnreadableText((line_of(node), f"{node.value} is too large"))
    return scalar


def _referenced_files(documents: list[Document]) -> Iterator[Path]:
    for document in documents:
        for member in _REFERENCES:
            if isinstance(document.body.get(member), str):
                yield (document.file.parent / document.body[member]).resolve()


def _problems(document: Document) -> Iterator[str]:
    schema = document_schema()
    kinds = schema["properties"]["kind"]["enum"]
    if document.kind not in kinds:
        advice = did_you_mean(document.kind, kinds)
        yield f"{document.place('kind')}: there is no kind {document.kind!r}{advice}; kinds are {listed(kinds)}"
        return
    known = [name for name in schema["$defs"][document.kind]["properties"] if name not in ("kind", "name")]
    unknown = [name for name in document.body if name not in known]
    for name in unknown:
        advice = did_you_mean(name, known)
        kind_text = indefinite(document.kind)
        yield f"{document.place(name)}: {kind_text} has no member {name!r}{advice}; it has {listed(known)}"
    if unknown:
        return
    for fault in _validator().iter_errors({"kind": document.kind, "name": document.name, **document.body}):
        path = [str(part) for part in fault.instance_path]
        where = f"{'.'.join(path)}: " if path else ""
        yield f"{document.place(path[0] if path else '')}: {where}{_explained(fault, schema)}"


def _explained(fault: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> str:
    *parents, keyword = fault.schema_path
    part: Any = schema
    for name in parents:
        part = part[name]
    value: Any = fault.instance
    description = str(part.get("description", "")) if isinstance(part, Mapping) else ""
    is_time = description.startswith(_DURATION) and keyword in ("type", "pattern")
    if description and (keyword == "oneOf" or is_time):
        forms = (description.partition(":")[0] if is_time else description).rstrip(".")
        return f"{forms[0].lower()}{forms[1:]}; got {json.dumps(value, ensure_ascii=False, separators=_COMPACT)}"
    if keyword in ("type", "enum"):
        return _of_value(fault, part, description)
    if keyword == "additionalProperties" and "properties" in part:
        known = list(part["properties"])
        unknown = next(name for name in value if name not in known)
        return f"there is no member {unknown!r}{did_you_mean(unknown, known)}; it has {listed(known)}"
    return fault.message


def _of_value(fault: jsonschema_rs.ValidationError, part: Mapping[str, Any], description: str) -> str:
    """Explain a value that is not one of an enumeration, or does not have the type of its member."""
    value: Any = fault.instance
    if value is None and ")" in str(fault.instance_path[-1]):  # such as {n: quantile(amount, 95)}
        return "has no value; commas in braces separate members, so put a value with commas in quotes"
    actual = f"; got {json.dumps(value, ensure_ascii=False, separators=_COMPACT)}"
    if "enum" in part:
        choices = [name for name in part["enum"] if isinstance(name, str)]
        return f"one of {', '.join(choices)}{did_you_mean(value, choices) if isinstance(value, str) else ''}{actual}"
    names = [part["type"]] if isinstance(part["type"], str) else part["type"]
    example = _EXAMPLE.search(description)
    such_as = f", {example.group()}" if example else ", such as [a, b]" if names == ["array"] else ""
    return f"{' or '.join(_TYPES.get(name, name) for name in names)}{such_as}{actual}"


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(document_schema())


def _repeated(documents: list[Document]) -> Iterator[str]:
    firsts: dict[tuple[str, ...], Document] = {}
    projects = [document for document in documents if document.kind == "project"]
    for document in projects[1:]:
        yield f"{document.place()}: a project has one name; it is at {projects[0].place()} already"
    for document in documents:
        identity = document.kind, document.name, str(document.body.get("stream")) * (document.kind == "event-type")
        first = firsts.setdefault(identity, document)
        if first is not document:
            yield f"{document.place()}: the {document.kind} {document.name!r} is at {first.place()} already; keep one"
