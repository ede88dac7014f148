"""Driver for a case on BoboCEP: patterns from a given module, and events passed to the engine one by one."""

from __future__ import annotations

import time
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from bobocep.cep.action.action import BoboAction
from bobocep.cep.action.handler import BoboActionHandlerBlocking
from bobocep.cep.phenom.phenom import BoboPhenomenon
from bobocep.setup.simple import BoboSetupSimple

from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.reading import lines_of, now, number_of, options_of, tell


class Note(BoboAction):  # type: ignore[misc]
    """An action that stores the event numbers of each match."""

    def __init__(self, place: int, found: list[tuple[int, list[int]]]) -> None:
        super().__init__(f"note-{place}")
        self._place, self._found = place, found

    def execute(self, event: Any) -> tuple[bool, Any]:
        """Record the event numbers of a match."""
        self._found.append((self._place, [one.data["number"] for one in event.history.all_events()]))
        return True, None


def main() -> None:
    """Run the case and print its result."""
    options = options_of("queries")
    patterns = imported(options.queries).patterns()
    ready_at = now()

    def measure(path: str) -> tuple[float, int, str]:
        found: list[tuple[int, list[int]]] = []
        phenomena = [
            BoboPhenomenon(f"p{place}", [pattern], action=Note(place, found)) for place, pattern in enumerate(patterns)
        ]
        engine = BoboSetupSimple(phenomena, BoboActionHandlerBlocking()).generate()
        held = list(map(made, lines_of(path))) if options.source == "memory" else None
        begin = time.perf_counter()
        for event in held if held is not None else map(made, lines_of(path)):
            engine.receiver.add_data(event)
            engine.update()
        seconds = time.perf_counter() - begin
        return seconds, *digest_of(found)

    tell(ready_at, options, measure)


def imported(path: str) -> ModuleType:
    """Import a file as a module."""
    spec = spec_from_file_location("queries", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(line: dict[str, Any]) -> dict[str, Any]:
    """Return the data of an event that predicates read."""
    return {
        "number": number_of(line["id"]),
        "type": line["type"],
        "time": line["time"],
        "key": line["key"],
        "value": line["data"].get("value"),
    }


if __name__ == "__main__":
    main()
