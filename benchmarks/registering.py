"""Registration of ten thousand patterns on one stream, one after the other, and a restart with all of them.

There are two forms of patterns: patterns that differ by a constant, which a filter index groups, and patterns without a
common form. A line shows, for a number of patterns, the milliseconds per pattern of four parts. The first part is the
service (checks, registry and log in a private Redis; wall-clock time). The second is a shard that applies each record
in a separate micro-batch and then measures itself. The third is the first event, which compiles all patterns. The last
is a restart from the saved state up to the first event. The parts of a shard are thread time. If the cost per pattern
is constant, the columns do not grow with the number.

``scripts/bench registering [--quick]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from service import Registration, Stores
from shards.state import ShardState
from streams import PatternOn, StreamDeclaration, StreamOn
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, empty_client, private_server, settings_for
from tests.builders.shards import event, log_of

STREAM = StreamDeclaration(name="orders")
FORMS: Mapping[str, str] = {
    "constants": "SEQ(A a [customer = 'c{0}'], B b [v > a.v]) WITHIN 1 h",
    "no common form": "SEQ(A a [x > {0} AND y != {0}], B b [z < {0}], C{0} c) WITHIN {0} min",
}


def text_of(form: str, number: int) -> str:
    """Return one pattern of a form."""
    return f"PATTERN p{number} EVENT {FORMS[form].format(number + 1)}"


def registered_s(texts: list[str]) -> float:
    """Return the wall-clock seconds in which the service registers all patterns."""
    with tempfile.TemporaryDirectory() as folder, private_server(Path(folder)) as url, empty_client(url) as client:
        settings = settings_for(url)
        registration = Registration(Stores(client, url, settings), settings, HandClock())
        registration.declare_stream(STREAM)
        start = time.perf_counter()
        for text in texts:
            register_pattern(registration, "orders", text)
        return time.perf_counter() - start


def _taken(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def shard_s(texts: list[str]) -> tuple[float, float, float]:
    """Return a shard's thread seconds for the records, for the first event, and for a restart up to the first event."""
    patterns = [PatternOn(name=f"p{number}", version=1, text=text) for number, text in enumerate(texts)]
    (log,) = log_of([StreamOn(STREAM), *patterns, [event(1, "A")], [event(2, "A")]]).values()
    state = ShardState(0)

    def apply() -> None:
        for entry in log[:-2]:
            state.advance([entry])
            state.measures()

    applied, first = _taken(apply), _taken(lambda: state.advance([log[-2]]))
    body = state.dump()
    return applied, first, _taken(lambda: ShardState.load(body).advance([log[-1]]))


def main() -> None:
    """Print the table."""
    numbers = (100, 200) if "--quick" in sys.argv else (1_000, 10_000)
    shard_s([text_of(form, number) for form in FORMS for number in range(2)])  # the kernels are loaded by now
    print("| form | patterns | service, ms each | shard, ms each | first event, ms each | restart, ms each |")
    print("|---|---|---|---|---|---|")
    for form in FORMS:
        for size in numbers:
            texts = [text_of(form, number) for number in range(size)]
            parts = [1_000 * seconds / size for seconds in (registered_s(texts), *shard_s(texts))]
            print(f"| {form} | {size:,} | " + " | ".join(f"{part:.2f}" for part in parts) + " |", flush=True)


if __name__ == "__main__":
    main()
