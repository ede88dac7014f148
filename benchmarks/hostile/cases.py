"""Hostile requests, generated from seeds. Documents have at most 100 KB.

Most documents are small, and some are as large as allowed. Half of them are well-formed: drawn at random, or in a shape
that grows (a chain, parallel branches, nesting). In the other half, bytes or parts are changed, doubled or cut.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

Document: TypeAlias = Any

MOST_BYTES = 100_000
TYPES = tuple("ABCDEFGHIJKL")
_XMLNS = "http://www.omg.org/spec/BPMN/20100524/MODEL"
_KINDS = (
    "prior exclusive require response precedence succession alternate_response alternate_precedence chain_response "
    "chain_precedence chain_succession co-existence choice exclusive_choice not_succession not_chain_succession "
    "implication not_together existence absence exactly init last end"
).split()
_ODD = (
    "",
    "\u0000",
    "\ufeff",
    "é" * 50,
    "A" * 20_000,
    "9" * 400,
    "-1",
    "1e999",
    "null",
    "{}",
    "[[[",
    "<x>",
    "'\"",
    "\n",
)
_CONDITIONS = ("", "", "", " [v > 5]", " [v > coalesce(prev(v), -1)]", " [s = 'x']")
_ENDS = ("", "", "", " LIMIT 5", " SELECT SKIP PAST LAST", " SELECT NEXT", " SELECT ALL MATCHES ONCE PER KEY")
_WORDS = (
    "SEQ AND OR NOT WITHIN WHERE EVENT PATTERN LIMIT SKIP NEXT ALL UNTIL STRICT ( ) [ ] { } + * , . < = and or".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request.

    Attributes:
        method: HTTP method.
        path: Path below ``/v1``.
        body: Body of the request.
        kind: Media type of the body.
        query: Query parameters.
    """

    method: str
    path: str
    body: bytes = b""
    kind: str = "application/json"
    query: dict[str, str] = field(default_factory=dict)


def calls(seed: int, stream: str) -> Iterator[Call]:
    """Yield the requests of one case on a declared stream."""
    chance = Random(f"hostile {seed}")
    family = chance.choice((_of_model, _of_constraints, _of_pattern, _of_schema, _of_events))
    yield from family(chance, stream)


def _of_model(chance: Random, stream: str) -> Iterator[Call]:
    content, kind = chance.choice((_tree, _bpmn, _pnml))(chance)
    content = _spoiled(chance, content)
    name = f"{stream}.{chance.randrange(5)}"
    query = {"stream": stream} if chance.random() < 0.3 else {}
    yield Call(method="PUT", path=f"/workflows/{name}", body=content, kind=kind, query=query)
    yield chance.choice(
        (
            Call(method="GET", path=f"/workflows/{name}/picture.svg"),
            Call(method="GET", path=f"/workflows/{name}/constraints", query={"full": "true"}),
            Call(method="GET", path=f"/workflows/{name}/diff", query={"from": "1", "to": "2"}),
            _json("POST", f"/workflows/{name}/conformance", {"traces": [_trace(chance) for _ in range(5)]}),
            _json("PUT", f"/streams/{stream}/workflow", {"workflow": name}),
        )
    )


def _of_constraints(chance: Random, stream: str) -> Iterator[Call]:
    count = _size(chance, 2_000)
    names = _names(chance, count)
    parts = [_constraint(chance, names) for _ in range(count)]
    document = {
        "stream": stream,
        "constraints": parts,
        "end": chance.sample(names, min(len(names), chance.choice((0, 0, 1)))),
    }
    yield Call(method="POST", path="/constraints", body=_spoiled(chance, json.dumps(document).encode()))
    yield Call(method="GET", path=chance.choice((f"/constraints/{stream}/analysis", f"/constraints/{stream}")))


def _of_pattern(chance: Random, stream: str) -> Iterator[Call]:
    name = f"{stream}_{chance.randrange(20)}"
    text = _spoiled(chance, f"PATTERN {name} EVENT {_pattern(chance)}".encode())[: MOST_BYTES // 4].decode(
        errors="replace"
    )
    body = {"stream": stream, "text": text}
    yield _json("POST", "/patterns", body)
    yield chance.choice(
        (
            Call(method="GET", path=f"/patterns/{name}"),
            _json("POST", "/patterns/dry-run", {**body, "events": chance.choice((10, 10_000))}),
            Call(method="DELETE", path=f"/patterns/{name}"),
        )
    )


def _of_schema(chance: Random, stream: str) -> Iterator[Call]:
    event_type = chance.choice(TYPES)
    body = _spoiled(chance, json.dumps(_schema(chance, _size(chance, 2_000))).encode())
    yield Call(method="PUT", path=f"/streams/{stream}/event-types/{event_type}", body=body)
    yield _json("PUT", f"/streams/{stream}/event-types", {"schemas": "check"})
    yield _events(chance, stream)


def _of_events(chance: Random, stream: str) -> Iterator[Call]:
    yield _events(chance, stream)


def _json(method: str, path: str, document: Document) -> Call:
    return Call(method=method, path=path, body=json.dumps(document).encode())


def _size(chance: Random, most: int) -> int:
    """Return a random size. Most sizes are small, and one in twenty is the largest allowed."""
    shape = chance.random()
    return most if shape < 0.05 else chance.randint(1, 200) if shape < 0.2 else chance.randint(1, 12)


def _names(chance: Random, count: int) -> Sequence[str]:
    return TYPES if chance.random() < 0.6 else [f"T{number}" for number in range(max(2, count))]


def _trace(chance: Random) -> list[str]:
    return chance.choices(TYPES, k=_size(chance, 2_000))


def _tree(chance: Random) -> tuple[bytes, str]:
    """Return a process tree, as YAML or JSON."""
    budget = _size(chance, 4_000)
    shape = chance.choice(("drawn", "chain", "parallel", "nest", "inclusive"))
    names = [f"T{number}" for number in range(budget)]
    tree: Document
    if shape == "nest":
        tree = "A"
        for number in range(min(budget, 300)):
            tree = {chance.choice(("sequence", "xor", "and", "or")): [tree, TYPES[number % 12]]}
    elif shape == "drawn":
        tree = _node(chance, budget)
    else:
        tree = {{"chain": "sequence", "parallel": "and", "inclusive": "or"}[shape]: names}
    text = json.dumps({"tree": tree}).encode()
    return text, chance.choice(("application/yaml", "application/json"))


def _node(chance: Random, budget: int) -> Document:
    if budget <= 1:
        return chance.choice((*TYPES, None))
    operator = chance.choice(("sequence", "xor", "and", "or", "loop", "optional"))
    if operator == "optional":
        return {operator: _node(chance, budget - 1)}
    width = 2 if operator == "loop" else chance.randint(2, min(budget, 6))
    return {operator: [_node(chance, budget // width) for _ in range(width)]}


def _bpmn(chance: Random) -> tuple[bytes, str]:
    """Return a flow graph: a chain, parallel branches, or random flows between nodes."""
    count = _size(chance, 600)
    tags = ("task", "task", "exclusiveGateway", "parallelGateway", "inclusiveGateway", "subProcess", "endEvent")
    shape = chance.choice(("chain", "parallel", "drawn", "drawn"))
    nodes = {"s": "startEvent", "e": "endEvent"}
    if shape == "chain":
        nodes |= {f"n{number}": "task" for number in range(count)}
        order = ["s", *(f"n{number}" for number in range(count)), "e"]
        flows = list(itertools.pairwise(order))
    elif shape == "parallel":
        gateway = chance.choice(tags[2:5])
        nodes |= {"g": gateway, "j": gateway, **{f"n{number}": "task" for number in range(count)}}
        flows = [("s", "g"), ("j", "e")]
        flows += [pair for number in range(count) for pair in (("g", f"n{number}"), (f"n{number}", "j"))]
    else:
        nodes |= {f"n{number}": chance.choice(tags) for number in range(count)}
        flows = [
            (chance.choice(list(nodes)), chance.choice(list(nodes)))
            for _ in range(int(count * chance.uniform(0.8, 1.6)) + 2)
        ]
    inside = "".join(f'<{tag} id="{name}" name="{name.upper()}"/>' for name, tag in nodes.items())
    arcs = "".join(
        f'<sequenceFlow id="f{number}" sourceRef="{source}" targetRef="{target}"/>'
        for number, (source, target) in enumerate(flows)
    )
    text = f'<definitions xmlns="{_XMLNS}"><process id="p">{inside}{arcs}</process></definitions>'
    return text.encode(), "application/xml"


def _pnml(chance: Random) -> tuple[bytes, str]:
    """Return a Petri net, usually without any meaning."""
    count = _size(chance, 300)
    places = "".join(
        f'<place id="p{number}"><initialMarking><text>{int(number == 0)}</text></initialMarking></place>'
        for number in range(count)
    )
    steps = "".join(
        f'<transition id="t{number}"><name><text>{chance.choice(TYPES)}</text></name></transition>'
        for number in range(count)
    )
    arcs = "".join(
        f'<arc id="a{number}" source="{source}" target="{target}"/>'
        for number, (source, target) in enumerate(_arc(chance, count) for _ in range(2 * count))
    )
    page = f'<page id="g">{places}{steps}{arcs}</page>'
    page = f'<page id="g">{places}{steps}{arcs}</page>'
    net = f'<net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet">{page}</net>'
    return f'<pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml">{net}</pnml>'.encode(), "application/xml"


def _arc(chance: Random, count: int) -> tuple[str, str]:
    ends = f"p{chance.randrange(count)}", f"t{chance.randrange(count)}"
    return ends if chance.random() < 0.5 else (ends[1], ends[0])


def _constraint(chance: Random, names: Sequence[str]) -> Document:
    kind = chance.choice(_KINDS)
    if kind in ("existence", "absence", "exactly"):
        return {kind: [chance.randint(1, 4), chance.choice(names)]}
    if kind in ("init", "last", "end"):
        return {kind: [chance.choice(names)]}
    width = chance.randint(2, 4) if kind in ("implication", "not_together") else 2
    return {kind: chance.sample(names, min(width, len(names)))}


def _pattern(chance: Random) -> str:
    """Return a pattern of few to very many steps, with constructs that make matching expensive."""
    shape = chance.random()
    if shape < 0.1:
        return " ".join(chance.choices(_WORDS, k=_size(chance, 3_000)))
    if shape < 0.2:
        depth = _size(chance, 2_000)
        return "SEQ(" * depth + "A a" + ")" * depth
    if shape < 0.3:
        steps = [_odd_step(chance, number) for number in range(min(_size(chance, 70), 70))]
        text = f"{chance.choice(('SEQ', 'AND', 'OR'))}({', '.join(steps)})"
    else:
        text = _good_pattern(chance)
    return text + chance.choice(("", "", " WITHIN 1 h", " WITHIN 10 d")) + chance.choice(_ENDS)


def _good_pattern(chance: Random) -> str:
    """Return a plausible pattern: a sequence with NOT, repetition and conditions between steps, short AND and OR."""
    count = min(_size(chance, 70), 70)
    if chance.random() < 0.2:
        steps = [f"{chance.choice(TYPES)} x{number}" for number in range(min(count, 5))]
        return f"{chance.choice(('AND', 'OR'))}({', '.join(steps)})"
    steps, single = [], None
    for number in range(count):
        if steps and chance.random() < 0.1:
            steps.append(f"NOT {chance.choice(TYPES)}")
        many = chance.choice(("", "", "", "+", "*", "{2}", "{2,}", "{500}"))
        condition = chance.choice((*_CONDITIONS, "" if single is None else f" [v > {single}.v]"))
        steps.append(f"{chance.choice(TYPES)}{many} x{number}{condition}")
        single = single if many else f"x{number}"
    return f"SEQ({', '.join(steps)})"


def _odd_step(chance: Random, number: int) -> str:
    """Return a step that is often not allowed at its place."""
    name = f"{chance.choice(TYPES)}{chance.choice(('', '', '+', '{2}', '{2,}', '*', '{500}'))} x{number}"
    condition = chance.choice((*_CONDITIONS, f" [v > x{number - 1}.v]"))
    return ("NOT " if chance.random() < 0.15 else "") + name + condition


def _schema(chance: Random, budget: int) -> Document:
    """Return a JSON Schema: random, wide, deep, or with references that multiply."""
    shape = chance.choice(("drawn", "drawn", "patterns", "enum", "references", "nest"))
    if shape == "patterns":
        texts = [f"({'a' * chance.randint(1, 5)}+)+{number}$" for number in range(budget)]
        return {
            "properties": {"s": {"type": "string"}, "list": {"items": {"allOf": [{"pattern": text} for text in texts]}}}
        }
    if shape == "enum":
        return {"properties": {"list": {"uniqueItems": True, "items": {"enum": list(range(budget))}}}}
    if shape == "references":
        levels = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 3} for n in range(min(budget, 40))}
        return {"$defs": {**levels, f"d{len(levels)}": {"type": "object"}}, "$ref": "#/$defs/d0"}
    if shape == "nest":
        schema: Document = {"type": "integer"}
        for _ in range(min(budget, 300)):
            schema = {"properties": {"v": schema}}
        return schema
    return _drawn_schema(chance, budget)


def _drawn_schema(chance: Random, budget: int) -> Document:
    if budget <= 1:
        return chance.choice(({"type": "string"}, {"minimum": 3}, {"pattern": "a{1,50}b"}, {"const": 1}, True, {}))
    parts = [_drawn_schema(chance, budget // 3) for _ in range(3)]
    return chance.choice(
        (
            {"anyOf": parts},
            {"not": parts[0], "oneOf": parts[1:]},
            {"properties": dict(zip("vsd", parts, strict=True)), "required": ["v"]},
            {"items": parts[0], "contains": parts[1], "additionalProperties": parts[2]},
            {"if": parts[0], "then": parts[1], "else": parts[2], "unevaluatedProperties": False},
        )
    )


def _events(chance: Random, stream: str) -> Call:
    """Return a request with few or many events: CloudEvents or plain objects, an array or lines, one or more keys."""
    count, keys = _size(chance, 1_000), chance.choice((1, 5))
    events = [_event(chance, number, keys) for number in range(count)]
    is_lines = chance.random() < 0.3
    text = "\n".join(map(json.dumps, events)) if is_lines else json.dumps(events)
    kind = (
        "application/x-ndjson"
        if is_lines
        else chance.choice(("application/json", "application/cloudevents-batch+json"))
    )
    body = b"x\n" * (MOST_BYTES // 2) if chance.random() < 0.02 else _spoiled(chance, text.encode())
    return Call(method="POST", path="/events", body=body, kind=kind, query={"stream": stream})


def _event(chance: Random, number: int, keys: int) -> Document:
    data = {"v": number, "s": chance.choice(("x", "a" * 30)), "id": f"k{number % keys}"}
    if chance.random() < 0.05:
        data["list"] = ["a" * 20] * chance.choice((1, 500))
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"e{chance.randrange(10**9)}",
        "source": "fuzz",
        "type": chance.choice(TYPES),
        "time": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
        "subject": f"k{number % keys}",
        "data": data,
    }
    if chance.random() < 0.01:
        event[chance.choice(list(event))] = chance.choice((None, 1e308, [], "\u0000", 10**30))
    return event


def _spoiled(chance: Random, content: bytes) -> bytes:
    """Return the document, spoiled in half of the cases. The result is never longer than allowed."""
    if chance.random() < 0.5 or not content:
        return content[:MOST_BYTES]
    for _ in range(chance.choice((1, 1, 2, 10))):
        content = (chance.choice(_SPOILERS)(chance, content) or b" ")[:MOST_BYTES]
    return content[:MOST_BYTES]


def _flip(chance: Random, content: bytes) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]


def _cut(chance: Random, content: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:]


def _double(chance: Random, content: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] * chance.choice((1, 2, 50)) + content[end:]


def _stuff(chance: Random, content: bytes) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + chance.choice(_ODD).encode() + content[place:]


_SPOILERS: tuple[Callable[[Random, bytes], bytes], ...] = (_flip, _flip, _cut, _double, _stuff)
