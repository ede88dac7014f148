"""CPU time of the sink for a batch, with one webhook, and with a webhook for each of 5,000 saved questions.

Each webhook selects the derived events of one row of the aggregate's table (``key``). A batch has 100 events of rows
without webhooks. In *one delivered*, it has one more event, of a row with a webhook. Figures are thread time, the best
of the rounds.

    scripts/bench webhook_routing
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from service import AlertSink, Stores
from service.stores import RegisteredWebhook, connect
from shards import OutputRow
from streams import SystemClock
from tests.builders.service import private_server, settings_for, sink_row

NUMBERS = (1, 100, 5_000)
_BATCH, _BATCHES, _ROUNDS = 100, 50, 5


def main() -> None:
    """Print the table."""
    print(f"{'webhooks':>8} {'none delivered':>15} {'one delivered':>15}")
    with TemporaryDirectory() as folder, private_server(Path(folder)) as url, connect(url) as client:
        stores = Stores(client, url, settings_for(url))
        first = 0
        for number in NUMBERS:
            for place in range(first, number):
                stores.webhooks.put(_webhook(place))
            first = number
            times = [_batch_ms(stores, is_delivered=one) for one in (False, True)]
            print(f"{number:>8,} {times[0]:>12.2f} ms {times[1]:>12.2f} ms")


def _batch_ms(stores: Stores, *, is_delivered: bool) -> float:
    """Return the thread time of a batch in milliseconds."""
    sink, best_s = AlertSink(stores, SystemClock()), float("inf")
    for turn in range(_ROUNDS):
        batches = [_rows(f"{time.time_ns()}-{turn}-{batch}", is_delivered=is_delivered) for batch in range(_BATCHES)]
        begun = time.thread_time()
        for epoch, rows in enumerate(batches):
            sink.index(rows, epoch)
        best_s = min(best_s, time.thread_time() - begun)
    return best_s / _BATCHES * 1_000


def _rows(mark: str, *, is_delivered: bool) -> list[OutputRow]:
    keys = [*(f"other-{number}" for number in range(_BATCH)), *(["q0"] if is_delivered else [])]
    members = {"stream": "x", "into": "watching", "type": "watching", "pattern": "watching", "version": 1, "data": {}}
    bodies = [{"id": f"{mark}-{key}", "key": key, "time": "2026-01-01T00:00:00Z", **members} for key in keys]
    return [sink_row(kind="derived", stream="x", id=str(one["id"]), body=orjson.dumps(one)) for one in bodies]


def _webhook(number: int) -> RegisteredWebhook:
    return RegisteredWebhook(
        id=f"wh_{number:032}",
        url=f"https://example.org/questions/{number}",
        secret="",
        stream="x",
        pattern="watching",
        key=f"q{number}",
        is_enabled=True,
        registered_us=number,
        kinds=("derived",),
    )


if __name__ == "__main__":
    main()
