"""Functions that Python drivers share: options, the events of a file, and the line with the result."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson


def options_of(*names: str) -> Namespace:
    """Parse the options that every driver has, and the given further options."""
    parser = ArgumentParser()
    for name in ("source", "warm", "events", *names):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def lines_of(path: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a file, as parsed lines."""
    with Path(path).open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def number_of(event_id: str) -> int:
    """Return the number of an event. For example, ``e12`` is 12."""
    return int(event_id[1:])


def tell(
    ready_at: float,
    options: Namespace,
    measure: Callable[[str], tuple[float, int, str]],
    more: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Warm up, measure, and print the line with the result.

    Args:
        ready_at: The time at which the engine was loaded, in seconds since 1970.
        options: The options from ``options_of``.
        measure: A function that runs the events of a file, and returns seconds, matches and their digest.
        more: Further members of the line, which are read after the measurement.
    """
    warm_up = measure(options.warm)[0] if options.warm else 0.0
    seconds, matches, digest = measure(options.events)
    told = {"ready_at": ready_at, "warm_up_s": warm_up, "seconds": seconds, "matches": matches, "digest": digest}
    print("RESULT " + json.dumps({**told, **more}), flush=True)


def now() -> float:
    """Return the time in seconds since 1970. Two processes can compare these times."""
    return time.time()
