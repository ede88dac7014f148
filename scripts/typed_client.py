"""Generates the typed part of the client from the description of the API.

``python scripts/typed_client.py`` writes three files in ``service/client``: the JSON objects of the API as typed
dictionaries (``wire.py``), the operations that clients look up when they run (``operations.json``), and the same
operations as methods for type checkers and editors (``resources.pyi``). A test compares them with the description.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "service" / "client"
_COMMAND = "scripts/typed_client.py"
_HOUSE = "house"  # whose comments in generated files are none of this file
_JSON = "application/json"
_STREAM = "text/event-stream"
_CONDITIONS = {"if-match": "If-Match", "if-none-match": "If-None-Match", "idempotency-key": "Idempotency-Key"}
_BY_METHOD = {"POST": "create", "PUT": "put", "PATCH": "change", "DELETE": "delete", "GET": "get"}
_NAMES = {  # what the rule of _named would call otherwise
    "list_events": "streams.events",
    "follow_events": "streams.live",
    "list_event_types": "event_types.list",
    "switch_checks": "event_types.switch",
    "get_event_type": "event_types.get",
    "put_event_type": "event_types.put",
    "delete_event_type": "event_types.delete",
    "follow_workflow": "streams.follow",
    "unfollow_workflow": "streams.unfollow",
    "punctuate": "streams.punctuate",
    "change_table_row": "tables.put_row",
    "delete_table_row": "tables.delete_row",
    "get_workflow_source": "workflows.source",
    "send_events": "events.send",
    "add_note": "alerts.add_note",
    "replay_dead_letters": "dead_letters.replay_all",
    "redeliver": "webhooks.redeliver_one",
    "redeliver_to_sink": "sinks.redeliver_one",
    "list_join_suspensions_of_join": "joins.suspensions",
    "list_aggregate_suspensions_of_aggregate": "aggregates.suspensions",
    "get_metrics": "pipeline.metrics",
}
_VERBS = ("get", "post", "put", "patch", "delete")
_WALKED = ("after", "limit")  # parameters that an iterator sets
_OPTIONS = """
class Condition(TypedDict, total=False):
    \"\"\"The state in which a resource is changed.\"\"\"

    if_match: str | None
    if_none_match: Literal["*"] | None

class Creation(TypedDict, total=False):
    \"\"\"The key by which a repeated creation is recognised; clients send one of their own if none is given.\"\"\"

    idempotency_key: str | None

class ConditionalCreation(Condition, Creation, total=False):
    \"\"\"The options of a creation that is made only in a certain state.\"\"\"

class Following(TypedDict, total=False):
    \"\"\"Where an iterator over events begins, and what is called where events are no longer kept.\"\"\"

    after: str | None
    on_gap: Callable[[str], None] | None

class Walk(Following, total=False):
    \"\"\"The number of items at most, and what is called with a cursor if more follow.\"\"\"

    most: int | None
    on_more: Callable[[str], None] | None
"""
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the client: the operation that it calls, and its types as texts.

    Attributes:
        kind: ``call``, ``find``, ``pages`` or ``live``, by the method of the client that carries it out.
        arguments: Names and types of the parts of the path.
        query: Names of keyword arguments, with name and type of their parameter.
        headers: As ``query``, for header fields.
        forms: Media types of the body.
        result: The type of the answer, or of an item.
    """

    name: str
    kind: str
    verb: str
    path: str
    summary: str
    arguments: Mapping[str, str]
    query: Mapping[str, tuple[str, str, bool]]
    headers: Mapping[str, str]
    body: str | None
    is_body_required: bool
    forms: tuple[str, ...]
    result: str


def operations(description: Mapping[str, Any]) -> dict[str, list[Method]]:
    """The methods of each resource, by name."""
    resources: dict[str, list[Method]] = {}
    changed = {
        path
        for path, verbs in description["paths"].items()
        for operation in verbs.values()
        if any(one["name"] == "if-match" for one in operation.get("parameters", ()))
    }
    for path, verbs in description["paths"].items():
        for verb, operation in verbs.items():
            is_list = _item(path, description) is not None
            resource, name = _named(verb.upper(), path, operation["operationId"], is_list=is_list)
            for method in _methods(name, verb.upper(), path, operation, description):
                known = resources.setdefault(resource, [])
                if any(one.name == method.name for one in known):
                    raise ValueError(f"{verb.upper()} {path}: {resource}.{method.name} exists; name it in _NAMES")
                known.append(method)
                if name == "get" and any(one.startswith(path) for one in changed):
                    known.append(_finding(method))
    return {
        resource: sorted(methods, key=lambda method: method.name) for resource, methods in sorted(resources.items())
    }


def _named(verb: str, path: str, operation_id: str, *, is_list: bool) -> tuple[str, str]:
    """Resource and method of an operation, by its path unless a table names them."""
    if operation_id in _NAMES:
        resource, _, name = _NAMES[operation_id].partition(".")
        return resource, name
    first, *rest = path.removeprefix("/v1").strip("/").split("/")
    further = [part for part in rest if not part.startswith("{")]
    if further:
        word = _word("_".join(further).removesuffix(".svg"))
        return _word(first), word.removesuffix("s") if rest[-1].startswith("{") else word
    return _word(first), "list" if verb == "GET" and is_list else _BY_METHOD[verb]


def _methods(
    name: str, verb: str, path: str, operation: Mapping[str, Any], description: Mapping[str, Any]
) -> Iterator[Method]:
    parameters = operation.get("parameters", ())
    query = {
        _word(one["name"]): (one["name"], _query_type(one["schema"]), bool(one.get("required")))
        for one in parameters
        if one["in"] == "query"
    }
    body, is_required, forms = _body(operation.get("requestBody"))
    media_type, answer = _answer(operation["responses"])
    common: dict[str, Any] = {
        "verb": verb,
        "path": path,
        "summary": operation["summary"],
        "arguments": _arguments(path, parameters),
        "headers": {_word(one["name"]): _CONDITIONS[one["name"]] for one in parameters if one["name"] in _CONDITIONS},
        "body": body,
        "is_body_required": is_required,
        "forms": forms,
    }
    if media_type == _STREAM:
        item = _item(path.removesuffix("/live"), description) or "dict[str, Any]"
        chosen = {name: one for name, one in query.items() if name not in _WALKED}
        yield Method(name=name, kind="live", result=item, query=chosen, **common)
    elif {"after", "limit"} <= query.keys() and (listed := _item(path, description)):
        page = "page" if name == "list" else f"{name}_page"
        title = operation["summary"].rstrip(".")
        yield Method(name=page, kind="call", result=answer, query=query, **{**common, "summary": f"{title}: one page"})
        chosen = {name: one for name, one in query.items() if name not in _WALKED}
        yield Method(name=name, kind="pages", result=listed, query=chosen, **common)
    else:
        one = "page" if name == "list" else name  # a list without a cursor: its only page
        yield Method(name=one, kind="call", result=answer, query=query, **common)


def _finding(method: Method) -> Method:
    return Method(
        name="find",
        kind="find",
        verb=method.verb,
        path=method.path,
        summary=f"{method.summary}, with its ETag; None if it does not exist",
        arguments=method.arguments,
        query=method.query,
        headers={},
        body=None,
        is_body_required=False,
        forms=(),
        result=method.result,
    )


def _arguments(path: str, parameters: Any) -> dict[str, str]:
    """The parts of a path, in their order in the path."""
    types = {one["name"]: _type(one["schema"]) for one in parameters if one["in"] == "path"}
    return {name: types[name] for name in re.findall(r"{(\w+)}", path)}


def _body(request: Mapping[str, Any] | None) -> tuple[str | None, bool, tuple[str, ...]]:
    """The type of a body, whether it is required, and its media types."""
    if request is None:
        return None, False, ()
    forms = tuple(request["content"])
    types = {
        _input(content.get("schema", {})) if form.endswith("json") and "ndjson" not in form else "str | bytes"
        for form, content in request["content"].items()
    }
    return " | ".join(sorted(types)), bool(request.get("required")), forms


def _input(schema: Mapping[str, Any]) -> str:
    """The type of a JSON body: an object without a model may be any mapping."""
    text = _type(schema, "wire.")
    text = text.replace("list[dict[str, Any]]", "Sequence[Mapping[str, Any]]")
    return text.replace("dict[str, Any]", "Mapping[str, Any]")


def _answer(responses: Mapping[str, Any]) -> tuple[str, str]:
    """Media type and type of the successful answer."""
    contents = next(one.get("content", {}) for status, one in responses.items() if status.startswith("2"))
    if not contents:
        return "", "None"
    if len(contents) > 1:
        return "", "Any"
    form, content = next(iter(contents.items()))
    if form.endswith("json"):
        return form, _type(content["schema"], "wire.")
    return form, "str" if form.startswith(("text/", "image/svg")) else "bytes"


def _item(path: str, description: Mapping[str, Any]) -> str | None:
    """The type of an item of a list, or None if the path is no list."""
    listing = description["paths"].get(path, {}).get("get")
    if listing is None:
        return None
    schema = listing["responses"]["200"]["content"].get(_JSON, {}).get("schema", {})
    page = description["components"]["schemas"].get(_reference(schema), {})
    items = page.get("properties", {}).get("items")
    return None if items is None else _type(items["items"], "wire.")


def _reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _query_type(schema: Mapping[str, Any]) -> str:
    text = _type(schema).replace("list[", "Sequence[")
    return f"{text} | datetime" if "date-time" in json.dumps(schema) else text


def _type(schema: Mapping[str, Any], prefix: str = "") -> str:
    """A JSON schema as a type of Python."""
    if name := _reference(schema):
        return f"{prefix}{name}"
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return " | ".join(dict.fromkeys(_type(one, prefix) for one in alternatives))
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        return f"Literal[{', '.join(json.dumps(value) if isinstance(value, str) else repr(value) for value in values)}]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": one}, prefix) for one in kind)
    if kind == "array":
        return f"list[{_type(schema.get('items', {}), prefix)}]"
    if kind == "object":
        further = schema.get("additionalProperties")
        value = _type(further, prefix) if isinstance(further, dict) and not schema.get("properties") else "Any"
        return f"dict[str, {value}]"
    return _SIMPLE.get(str(kind), "Any")


def _word(name: str) -> str:
    """A name of the API as a name of Python."""
    word = name.replace("-", "_")
    return f"{word}_" if keyword.iskeyword(word) else word


def wire_module(description: Mapping[str, Any]) -> str:
    """The JSON objects of the API as typed dictionaries."""
    lines = [
        '"""The JSON objects of the API; objects in answers may have further members in later releases."""',
        "",
        f"# Generated by {_COMMAND}",
        f"# {_HOUSE}: allow file-size: generated, one class for each object",
        "from __future__ import annotations",
        "",
        "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict",
        "",
    ]
    for name, schema in sorted(description["components"]["schemas"].items()):
        lines += _typed_dictionary(name, schema)
    return "\n".join(lines)


def _typed_dictionary(name: str, schema: Mapping[str, Any]) -> list[str]:
    members, required = schema.get("properties", {}), schema.get("required", ())
    title = " ".join(schema.get("description", "").split("\n\n")[0].split()) or f"The object ``{name}``."
    if schema.get("additionalProperties") is True or not members:
        return [f'{name}: TypeAlias = "dict[str, Any]"', f'"""{title}"""', ""]
    types = {
        member: _type(form) if member in required else f"NotRequired[{_type(form)}]" for member, form in members.items()
    }
    if any(keyword.iskeyword(member) for member in members):
        quoted = ", ".join(f'"{member}": {_quoted(kind)}' for member, kind in types.items())
        return [f'{name} = TypedDict("{name}", {{{quoted}}})', f'"""{title}"""', ""]
    return [f"class {name}(TypedDict):", f'    """{title}"""', "", *(f"    {n}: {t}" for n, t in types.items()), ""]


def _quoted(kind: str) -> str:
    """A type as a text, as it may name a class that follows."""
    inner = kind.removeprefix("NotRequired[").removesuffix("]") if kind.startswith("NotRequired[") else None
    return repr(kind) if inner is None else f"NotRequired[{inner!r}]"


def operation_table(resources: Mapping[str, list[Method]]) -> str:
    """The operations as clients look them up."""
    table = {resource: {method.name: _entry(method) for method in methods} for resource, methods in resources.items()}
    rows = [
        f'"{resource}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in methods.items())
        + "\n}"
        for resource, methods in table.items()
    ]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _entry(method: Method) -> dict[str, Any]:
    entry = {
        "kind": method.kind,
        "method": method.verb,
        "path": method.path,
        "summary": method.summary,
        "arguments": list(method.arguments),
        "query": {name: wire for name, (wire, _, _) in method.query.items()},
        "required": [name for name, (_, _, is_required) in method.query.items() if is_required],
        "headers": dict(method.headers),
        "forms": list(method.forms),
        "body": method.is_body_required,
    }
    return {name: value for name, value in entry.items() if value not in ([], {}, False)}


def stub(resources: Mapping[str, list[Method]]) -> str:
    """The operations as methods of classes, for type checkers and editors."""
    lines = [
        '"""The operations of the API as methods, for type checkers and editors; ``resources.py`` carries them out."""',
        "",
        f"# Generated by {_COMMAND}",
        f"# {_HOUSE}: allow file-size: generated, one method for each operation and client",
        "from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence",
        "from datetime import datetime",
        "from typing import Any, Literal, TypedDict, Unpack",
        "",
        "from . import wire",
        "from .calls import LiveEvent, Tagged",
        _OPTIONS,
        "def operation_table() -> Mapping[str, Mapping[str, Any]]: ...",
        "",
    ]
    for prefix, word in (("", "synchronous"), ("Async", "asynchronous")):
        for resource, methods in resources.items():
            lines += [f"class {prefix}{_class(resource)}:"]
            lines += [line for method in methods for line in _signature(method, is_async=bool(prefix))]
            lines += [""]
        lines += [f"class {prefix}Resources:", f'    """The resources of the {word} client, and calls of any path."""']
        lines += [line for verb in _VERBS for line in _generic(verb, is_async=bool(prefix))]
        lines += [f"    {resource}: {prefix}{_class(resource)}" for resource in resources]
        lines += [""]
    return "\n".join(lines)


def _generic(verb: str, *, is_async: bool) -> list[str]:
    """A method for calls of any path."""
    body = "" if verb in ("get", "delete") else "body: Any = None, "
    return [f"    {'async ' if is_async else ''}def {verb}(self, path: str, {body}**query: Any) -> Any: ..."]


def _class(resource: str) -> str:
    return "".join(part.title() for part in resource.split("_"))


def _signature(method: Method, *, is_async: bool) -> list[str]:
    parts = ["self", *(f"{name}: {kind}" for name, kind in method.arguments.items())]
    if method.body is not None:
        parts.append(f"body: {method.body}" if method.is_body_required else f"body: {method.body} | None = None")
    options = [_option(name, kind, is_required) for name, (_, kind, is_required) in method.query.items()]
    if len(method.forms) > 1:
        forms = ", ".join(json.dumps(form) for form in method.forms)
        options.append(f"media_type: Literal[{forms}] | None = None")
    parts += ["*", *options] if options else []
    group = _GROUPS.get(method.kind) or _GROUPS.get(" ".join(sorted(method.headers)))
    parts += [f"**options: Unpack[{group}]"] if group else []
    iterator, waiting = ("AsyncIterator", "async ") if is_async else ("Iterator", "")
    result = {
        "call": method.result,
        "find": f"Tagged[{method.result}] | None",
        "pages": f"{iterator}[{method.result}]",
        "live": f"{iterator}[LiveEvent[{method.result}]]",
    }[method.kind]
    is_iterator = method.kind in ("pages", "live")
    head = f"    {'' if is_iterator else waiting}def {method.name}({', '.join(parts)}) -> {result}:"
    return [head, f'        """{method.summary.rstrip(".")}."""']


_GROUPS = {
    "pages": "Walk",
    "live": "Following",
    "if_match if_none_match": "Condition",
    "idempotency_key": "Creation",
    "idempotency_key if_match if_none_match": "ConditionalCreation",
}


def _option(name: str, kind: str, is_required: bool) -> str:
    if is_required:
        return f"{name}: {kind}"
    return f"{name}: {kind} = None" if "None" in kind else f"{name}: {kind} | None = None"


def formatted(text: str, name: str) -> str:
    """A module in the format of this repository."""
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(FOLDER / name), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def generated(description: Mapping[str, Any]) -> dict[str, str]:
    """The generated files by name."""
    resources = operations(description)
    return {
        "wire.py": formatted(wire_module(description), "wire.py"),
        "operations.json": operation_table(resources),
        "resources.pyi": formatted(stub(resources), "resources.pyi"),
    }


if __name__ == "__main__":
    from api import create_app
    from service import Settings

    for file, text in generated(create_app(Settings(auth="off")).openapi()).items():
        (FOLDER / file).write_text(text, encoding="utf-8")
