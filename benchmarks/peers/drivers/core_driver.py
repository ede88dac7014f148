"""One case on CORE, offline mode, through its Python package: run only, nothing of it is linked or copied.

The engine writes its matches as text; they are read back after the clock has stopped.
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

_EVENT = re.compile(r"\(id: (\d+) attributes: \[(\d+)")
_WORD = re.compile(r"\w+")


def main() -> None:
    """Run the case and tell its result."""
    options = options_of("queries")
    queries: list[str] = json.loads(Path(options.queries).read_text(encoding="utf-8"))
    types = sorted({str(line["type"]) for line in lines_of(options.events)} | set(named_in(queries)))
    ready_at = now()

    def measure(path: str) -> tuple[float, int, str]:
        server = pycer.PyOfflineServer()
        declared = ", ".join(f"EVENT {name} {{ number:int, key:string, moment:int, value:double }}" for name in types)
        info = server.declare_stream(f"CREATE STREAM S {{ {declared} }}")
        ids = {event.name: event.id for event in info.events_info}
        for query in queries:
            server.add_query(query)
        held = [made(line, ids) for line in lines_of(path)] if options.source == "memory" else None
        begin = time.perf_counter()
        server.send_events(held if held is not None else [made(line, ids) for line in lines_of(path)])
        text = server.get_output()
        seconds = time.perf_counter() - begin
        places = {steps_of(query, ids): place for place, query in enumerate(queries)}
        return seconds, *digest_of(matches_of(text, places))

    tell(ready_at, options, measure)


def made(line: dict[str, object], ids: dict[str, int]) -> pycer.PyEvent:
    """The engine's event of a line."""
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
    """The types that queries name: the words of their formulas that are written large."""
    for query in queries:
        formula = re.split("FILTER|PARTITION|WITHIN", query.partition("WHERE")[2])[0]
        yield from (word for word in _WORD.findall(formula) if word[0].isupper())


def steps_of(query: str, ids: dict[str, int]) -> tuple[int, ...]:
    """The types that the WHERE of a query names, in its order."""
    where = query.partition("WHERE")[2]
    return tuple(ids[word] for word in _WORD.findall(where) if word in ids)


def matches_of(text: str, places: dict[tuple[int, ...], int]) -> Iterator[tuple[int, list[int]]]:
    """The matches of the engine's text, a line each; which of several queries found one is told by its types."""
    for line in text.splitlines():
        events = [(int(kind), int(number)) for kind, number in _EVENT.findall(line)]
        place = places[tuple(kind for kind, _ in events)] if len(places) > 1 else 0
        yield place, [number for _, number in events]


if __name__ == "__main__":
    main()
