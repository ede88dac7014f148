"""What the drivers in Python share: their options, the events of a file, and the line that tells the result."""

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
    """The options that every driver has, and those named."""
    parser = ArgumentParser()
    for name in ("source", "warm", "events", *names):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def lines_of(path: str) -> Iterator[dict[str, Any]]:
    """The events of a file as its lines have them, one after the other."""
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
        options: Those of ``options_of``.
        measure: Runs the events of a file and returns seconds, matches and their digest.
        more: Told as it is once all is measured.
    """
    warm_up = measure(options.warm)[0] if options.warm else 0.0
    seconds, matches, digest = measure(options.events)
    told = {"ready_at": ready_at, "warm_up_s": warm_up, "seconds": seconds, "matches": matches, "digest": digest}
    print("RESULT " + json.dumps({**told, **more}), flush=True)


def now() -> float:
    """Seconds since 1970, for what two processes compare."""
    return time.time()
