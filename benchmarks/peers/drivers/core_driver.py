"""Driver for a case on CORE in offline mode, through its Python package. CORE is only run, neither linked nor copied.

The engine writes its matches as text, which is parsed after the measurement.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pycer

from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.reading import lines_of, now, number_of, options_of, tell

_EVENT = re.compile(r"\(id: \d+ attributes: \[(\d+)")
_WORD = re.compile(r"\w+")


def main() -> None:
    """Run the case and print its result."""
    options = options_of("queries")
    queries: list[str] = json.loads(Path(options.queries).read_text(encoding="utf-8"))
    types = sorted({str(line["type"]) for line in lines_of(options.events)} | set(named_in(queries)))
    ready_at = now()

    def measure(path: str) -> tuple[float, int, str]:
        server, ids = serving(types, queries)
        held = [made(line, ids) for line in lines_of(path)] if options.source == "memory" else None
        begin = time.perf_counter()
        server.send_events(held if held is not None else [made(line, ids) for line in lines_of(path)])
        text = server.get_output()
        seconds = time.perf_counter() - begin
        texts = [text] if len(queries) == 1 else [alone(types, query, path) for query in queries]
        return seconds, *digest_of(found for place, text in enumerate(texts) for found in matches_of(place, text))

    tell(ready_at, options, measure)


def made(line: dict[str, object], ids: dict[str, int]) -> pycer.PyEvent:
    """Return the engine's event for a line."""
    data, moment = line["data"], line["time"]
    assert isinstance(data, dict)
    assert isinstance(moment, int)
    cells = [
        pycer.PyIntValue(number_of(str(line["id"]))),
        pycer.PyStringValue(str(line["key"])),
        pycer.PyIntValue(moment),
        pycer.PyDoubleValue(float(data.get("value") or 0.0)),
    ]
    return pycer.PyEvent(ids[str(line["type"])], cells, pycer.PyIntValue(moment))


def named_in(queries: list[str]) -> Iterator[str]:
    """Yield the types in queries: the capitalised words of their formulas."""
    for query in queries:
        formula = re.split("FILTER|PARTITION|WITHIN", query.partition("WHERE")[2])[0]
        yield from (word for word in _WORD.findall(formula) if word[0].isupper())


def serving(types: list[str], queries: list[str]) -> tuple[pycer.PyOfflineServer, dict[str, int]]:
    """Return an engine with the queries, and its numbers of the types."""
    declared = ", ".join(f"EVENT {name} {{ number:int, key:string, moment:int, value:double }}" for name in types)
    server = pycer.PyOfflineServer()
    info = server.declare_stream(f"CREATE STREAM S {{ {declared} }}")
    for query in queries:
        server.add_query(query)
    return server, {event.name: event.id for event in info.events_info}


def alone(types: list[str], query: str, path: str) -> str:
    """Run one query by itself and return the engine's output. Several queries would write into one another's lines."""
    server, ids = serving(types, [query])
    server.send_events([made(line, ids) for line in lines_of(path)])
    return str(server.get_output())


def matches_of(place: int, text: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the matches in the engine's output for one query: one per line, with the number first in each event."""
    for line in text.splitlines():
        yield place, [int(number) for number in _EVENT.findall(line)]


if __name__ == "__main__":
    main()
