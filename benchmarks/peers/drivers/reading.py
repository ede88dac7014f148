"""Common parts of the drivers in Python: options, the events of a file, and the line with the result."""

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
    """Parse the options of every driver and the named further ones."""
    parser = ArgumentParser()
    for name in ("source", "warm", "events", *names):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def lines_of(path: str) -> Iterator[dict[str, Any]]:
    """The events of a file, as parsed lines."""
    with Path(path).open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def number_of(event_id: str) -> int:
    """The number of an event: ``e12`` is 12."""
    return int(event_id[1:])


def tell(
    ready_at: float,
    options: Namespace,
    measure: Callable[[str], tuple[float, int, str]],
    more: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Warm up, measure, and print the line of the result.

    Args:
        ready_at: When the engine was loaded, seconds since 1970.
        options: The options of ``options_of``.
        measure: Runs the events of a file and returns seconds, matches and their digest.
        more: Further members of the line, read after the measurement.
    """
    warm_up = measure(options.warm)[0] if options.warm else 0.0
    seconds, matches, digest = measure(options.events)
    told = {"ready_at": ready_at, "warm_up_s": warm_up, "seconds": seconds, "matches": matches, "digest": digest}
    print("RESULT " + json.dumps({**told, **more}), flush=True)


def now() -> float:
    """Seconds since 1970, for times that two processes compare."""
    return time.time()
