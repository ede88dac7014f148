"""Streams: a graph of streams and operators with rates, and single streams with definition and newest events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from console.calls import at
from console.formats import plural, rate
from console.page import Page, all_of, allowed

_MOST_STREAMS: Final = 60
_WIDTH: Final = 190
_HEIGHT: Final = 46
_COLUMN: Final = 240
_ROW: Final = 62
_TAIL: Final = 20
_OPERATORS: Final = ("patterns", "joins", "aggregates", "taps")


@dataclass(frozen=True, slots=True)
class Node:
    """A stream or an operator in the graph."""

    name: str
    kind: str
    note: str
    link: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing of streams and operators, and of the flow of events between them."""

    nodes: Sequence[Node]
    lines: Sequence[str]
    width: int
    height: int


async def show(page: Page) -> Response:
    """Render the graph of streams and operators, the most expensive engines, and the chosen stream."""
    streams, operators = await all_of(page.streams(), _operators(page))
    part, following = _part(page, streams, operators)
    details, pipeline, plan = await all_of(
        _details(page, part),
        allowed(page.get("/pipeline", age_s=1.0)),
        allowed(page.get("/pipeline/plan", age_s=1.0)),
    )
    rates = _rates(plan)
    name = page.query("operator")
    operator = operators.get(name or "")
    chosen = None if operator else next((detail for detail in details if detail["name"] == page.query("stream")), None)
    explained = [name] if operator and name else chosen["producers"] if chosen else []
    return page.render(
        "streams.html",
        title="Streams",
        graph=_graph(details, operators, rates),
        rows={row["name"]: row for row in pipeline["streams"]} if pipeline else {},
        streams=details,
        stream_count=len(streams),
        next=following,
        engines=dearest(plan["engines"]) if plan else [],
        is_idle=not any(rates.values()),
        chosen=chosen,
        operator=operator,
        operators=operators,
        path_of=path_of,
        tail=await _tail(page, chosen),
        sentences=await _sentences(
            page, [operators[operator_name] for operator_name in explained if operator_name in operators]
        ),
    )


def _part(
    page: Page, streams: Sequence[Mapping[str, Any]], operators: Mapping[str, Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], str | None]:
    """Return the streams that are drawn on one page of the graph, and the cursor of the next page.

    By default, the page has the chosen stream.
    """
    names, after = [stream["name"] for stream in streams], page.query("after")
    operator = operators.get(page.query("operator") or "")
    chosen = operator["stream"] if operator else page.query("stream")
    first = 0
    if after in names:
        first = names.index(after) + 1
    elif chosen in names:
        first = names.index(chosen) // _MOST_STREAMS * _MOST_STREAMS
    end = first + _MOST_STREAMS
    return streams[first:end], names[end - 1] if end < len(names) else None


def dearest(engines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort engines by processor use, then by cost per event, both descending. The cost is 0 without events."""
    return sorted(engines, key=lambda engine: (-engine["cores"], -(engine["cost_us"] or 0.0)))


def path_of(operator: Mapping[str, Any]) -> str:
    """Return the address of an operator's page."""
    name = operator["name"]
    return at("patterns", name) if operator["plural"] == "patterns" else f"/streams?operator={_query(name)}#chosen"


async def _tail(page: Page, stream: Mapping[str, Any] | None) -> list[Any]:
    if stream is None:
        return []
    return list(reversed((await page.get(at("streams", stream["name"], "events"), limit=_TAIL))["items"]))


async def _sentences(page: Page, operators: Sequence[Mapping[str, Any]]) -> list[str]:
    paths = [
        at(operator["plural"], operator["name"], "explanation")
        for operator in operators
        if operator["plural"] != "patterns"
    ]
    explanations = await all_of(*(allowed(page.get(path, age_s=1.0), {"sentences": []}) for path in paths))
    return [sentence for explanation in explanations for sentence in explanation["sentences"]]


async def _details(page: Page, streams: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return await all_of(*(page.get(at("streams", stream["name"]), age_s=5.0) for stream in streams))


async def _operators(page: Page) -> dict[str, dict[str, Any]]:
    lists = await all_of(*(allowed(page.get(f"/{kind}", age_s=1.0), {"items": []}) for kind in _OPERATORS))
    return {
        operator["name"]: {**operator, "plural": kind}
        for kind, listed in zip(_OPERATORS, lists, strict=True)
        for operator in listed["items"]
        if operator["state"] != "retired"
    }


def _rates(plan: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the events per second of each stream, and the results per second of each operator, by name."""
    rates: dict[str, float] = {}
    for engine in plan["engines"] if plan else ():
        rates[engine["stream"]] = max(rates.get(engine["stream"], 0.0), engine["events_per_s"])
        for operator in engine["operators"]:
            rates[operator["name"]] = operator["results_per_s"]
    return rates


def _graph(
    streams: Sequence[Mapping[str, Any]], operators: Mapping[str, Mapping[str, Any]], rates: Mapping[str, float]
) -> Graph:
    edges: set[tuple[str, str]] = set()
    notes: dict[str, tuple[str, str, str]] = {}
    for stream in streams:
        name = f"stream:{stream['name']}"
        kind = "derived" if stream["derived"] else "stream"
        notes[name] = (kind, rate(rates.get(stream["name"])), f"/streams?stream={_query(stream['name'])}#chosen")
        makers = set(stream["producers"]) & operators.keys()
        edges |= {(f"operator:{maker}", name) for maker in makers}
        readers = [operators[reader] for reader in stream["consumers"] if reader in operators]
        plain = [consumer for consumer in readers if consumer["plural"] == "patterns" and not consumer.get("into")]
        edges |= {(name, f"operator:{consumer['name']}") for consumer in readers if consumer not in plain}
        if plain:
            group = f"patterns:{stream['name']}"
            edges.add((name, group))
            alert_rate = sum(rates.get(consumer["name"], 0.0) for consumer in plain)
            notes[group] = ("pattern", f"{rate(alert_rate)} alerts", f"/patterns?stream={_query(stream['name'])}")
    for name, operator in operators.items():
        kind = operator["plural"].removesuffix("s")
        notes.setdefault(f"operator:{name}", (kind, rate(rates.get(name)), path_of(operator)))
    used_names = {name for edge in edges for name in edge} | {name for name in notes if name.startswith("stream:")}
    return _drawn(
        {name: notes[name] for name in sorted(used_names) if name in notes}, edges, _titles(streams, operators)
    )


def _query(name: str) -> str:
    return at(name)[1:]


def _titles(streams: Sequence[Mapping[str, Any]], operators: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return titles such as ``3 patterns`` for the boxes of the graph that combine several patterns.

    There is a box for each stream with patterns that have no INTO.
    """
    counts: dict[str, int] = defaultdict(int)
    for stream in streams:
        for reader in stream["consumers"]:
            operator = operators.get(reader)
            if operator is not None and operator["plural"] == "patterns" and not operator.get("into"):
                counts[f"patterns:{stream['name']}"] += 1
    return {name: plural(count, "pattern") for name, count in counts.items()}


def _drawn(notes: Mapping[str, tuple[str, str, str]], edges: set[tuple[str, str]], titles: Mapping[str, str]) -> Graph:
    depths = dict.fromkeys(notes, 0)
    for _ in notes:  # at most one round for each step of the longest path
        deeper = {to: depths[start] + 1 for start, to in edges if start in depths and depths[start] >= depths[to]}
        if not deeper:
            break
        depths |= deeper
    rows: dict[int, int] = defaultdict(int)
    nodes: dict[str, Node] = {}
    heights: dict[str, float] = {}
    for name in sorted(notes, key=lambda node_name: depths[node_name]):  # below its feeding boxes, so few lines cross
        feeding = [heights[start] for start, to in edges if to == name and start in heights]
        heights[name] = sum(feeding) / len(feeding) if feeding else float(len(heights))
    for name in sorted(notes, key=lambda node_name: (depths[node_name], heights[node_name], node_name)):
        kind, note, link = notes[name]
        title = titles.get(name, name.partition(":")[2])
        place = (depths[name] * _COLUMN + 4, rows[depths[name]] * _ROW + 4)
        nodes[name] = Node(title, kind, note, link, *place)
        rows[depths[name]] += 1
    lines = [_line(nodes[start], nodes[to]) for start, to in sorted(edges) if start in nodes and to in nodes]
    width = (max(depths.values(), default=0) + 1) * _COLUMN - (_COLUMN - _WIDTH) + 8
    return Graph(list(nodes.values()), lines, width, max(rows.values(), default=1) * _ROW)


def _line(start: Node, end: Node) -> str:
    x, y = start.x + _WIDTH, start.y + _HEIGHT // 2
    to_x, to_y = end.x, end.y + _HEIGHT // 2
    middle = (x + to_x) // 2
    return f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"
