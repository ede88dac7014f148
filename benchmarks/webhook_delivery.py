"""Webhooks with a failing receiver and a killed deliverer: each alert arrives, and none is sent again after success.

Alerts are queued in a real Redis for one webhook, and a real deliverer process sends them to a receiver on loopback
that fails at random: it answers 500, resets the connection, or does not answer until the time-out. When the receiver
has accepted half of the alerts, the deliverer is killed (SIGKILL) and started again. In the end, the receiver must have
accepted every alert, and no alert may have been sent again after that. Two exceptions are counted separately: alerts
that were being sent at the kill, which are then read from Redis, and alerts that the receiver answered after the
time-out, which the log of attempts shows. Every signature is verified by the reference library of Standard Webhooks.

    scripts/bench webhook_delivery --deliveries=10000
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition, Thread

import orjson
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from service import Stores, WebhookDraft, WebhookLibrary
from service.stores import connect
from service.stores.deliveries.delivery_queue import SENDING_KEY
from streams import SystemClock
from tests.builders.service import private_server, settings_for, sink_row

FAULTS = ("500", "reset", "silence")

_ACCEPTED = b"HTTP/1.1 204 No Content\r\n\r\n"
_REFUSED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
_CHUNK = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Parameters of a run.

    Attributes:
        deliveries: The number of deliveries.
        failing: The share of the attempts at which the receiver fails.
        timeout_s: The time-out of an attempt.
        lease_margin_s: The value of the setting with this name.
        patience_s: The maximum time for all deliveries.
        seed: The seed of the failures.
    """

    deliveries: int
    failing: float = 0.3
    timeout_s: float = 1.0
    lease_margin_s: float = 30.0
    patience_s: float = 900.0
    seed: int = 7

    def environment(self, url: str) -> dict[str, str]:
        """Return the settings of the deliverer. Pauses are shorter than usual, to keep the run short."""
        webhooks = {
            "ALLOWED_TARGETS": "127.0.0.1/32",
            "TIMEOUT_S": self.timeout_s,
            "LEASE_MARGIN_S": self.lease_margin_s,
            "ATTEMPTS": 40,
            "FIRST_DELAY_S": 0.5,
            "DELAY_FACTOR": 2,
            "MAX_DELAY_S": 5,
            "TARGET_CONCURRENCY": 64,
            "CIRCUIT_PAUSE_S": 0.5,
            "LOG_KEPT": 100_000,
        }
        named = {f"FORESTALL_WEBHOOKS__{name}": str(value) for name, value in webhooks.items()}
        return {"PATH": os.environ["PATH"], "FORESTALL_REDIS_URL": url, "FORESTALL_LOG_LEVEL": "ERROR", **named}


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The results of a run.

    Attributes:
        expected: The ids of the alerts.
        taken: The number of times that the receiver accepted each alert.
        failures: The number of the receiver's failures by kind.
        unsigned: The number of requests with a wrong signature.
        on_the_way: The ids that were being sent when the deliverer was killed.
        late: The ids that the receiver answered only after the deliverer's time-out.
        duration_s: The time from the first attempt to the last accepted alert, including the restart.
        given_up: The deliveries that were abandoned.
        queued: The deliveries that are still queued in the end.
    """

    expected: set[str]
    taken: Counter[str]
    failures: Counter[str]
    unsigned: int
    on_the_way: set[str]
    late: set[str] = field(default_factory=set)
    duration_s: float
    given_up: int = 0
    queued: int = 0

    @property
    def again(self) -> set[str]:
        """The ids that were sent again after the receiver had accepted them."""
        return {name for name, count in self.taken.items() if count > 1}

    @property
    def faults(self) -> list[str]:
        """Descriptions of all faults. Empty if the run has none."""
        found = {
            "lost": len(self.expected - self.taken.keys()),
            "sent again after success without a reason": len(self.again - self.on_the_way - self.late),
            "that should not be": len(self.taken.keys() - self.expected),
            "with a wrong signature": self.unsigned,
            "given up": self.given_up,
            "left in the queue": self.queued,
        }
        return [f"{count} {what}" for what, count in found.items() if count]


@dataclass(slots=True)
class BadReceiver:
    """A receiver that fails at random.

    Attributes:
        failing: The share of the attempts that fail.
        chance: The random numbers that choose the failures.
        secret: The secret with which messages are signed.
        taken: The number of times that the receiver accepted each id.
        failures: The number of failures by kind.
        silences: The number of attempts for each id that the receiver did not answer.
        unsigned: The number of requests with a wrong signature.
        changed: The condition that is notified of each change.
    """

    failing: float
    chance: random.Random
    secret: str = ""
    taken: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    silences: Counter[str] = field(default_factory=Counter)
    unsigned: int = 0
    changed: Condition = field(default_factory=Condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it is closed."""
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answer(reader, writer):
                    await writer.drain()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Return whether the connection remains open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
        body = await reader.readexactly(int(headers["content-length"]))
        fault = self.chance.choice(FAULTS) if self.chance.random() < self.failing else None
        with self.changed:
            try:
                Webhook(self.secret).verify(body, headers)
            except (WebhookVerificationError, ValueError):
                self.unsigned += 1
            if fault is None:
                self.taken[headers["webhook-id"]] += 1
            else:
                self.failures[fault] += 1
                self.silences[headers["webhook-id"]] += fault == "silence"
            self.changed.notify_all()
        if fault == "silence":
            await reader.read(1)  # until the sender gives up
            return False
        if fault == "reset":
            writer.transport.abort()
            return False
        writer.write(_ACCEPTED if fault is None else _REFUSED)
        return True

    def await_taken(self, count: int, patience_s: float) -> None:
        """Wait until ``count`` alerts were accepted."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.taken) >= count, patience_s):
                raise TimeoutError(f"{len(self.taken)} alerts were taken within {patience_s:g} s")


@contextmanager
def listening(receiver: BadReceiver) -> Iterator[str]:
    """Run a receiver on a free port of loopback, in a separate thread. Yield its URL."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(receiver.serve, "127.0.0.1", 0, backlog=256))
    thread = Thread(target=loop.run_forever, name="receiver")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/alerts"
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def deliverer(environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a deliverer process, which is killed at the end of the block."""
    process = subprocess.Popen([sys.executable, "-m", "service.delivery.deliverer"], env=environment, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run(plan: Plan, folder: Path) -> Outcome:
    """Deliver all alerts, with a kill in the middle, and return the outcome."""
    receiver = BadReceiver(plan.failing, random.Random(plan.seed))
    with private_server(folder) as redis_url, connect(redis_url) as client, listening(receiver) as url:
        settings = settings_for(redis_url, webhooks={"allowed_targets": "127.0.0.1/32"})
        stores = Stores(client, redis_url, settings)
        webhook = WebhookLibrary(stores, settings, SystemClock()).register(WebhookDraft(url=url))
        receiver.secret = webhook.secret
        expected = _queue(stores, plan.deliveries)
        environment = plan.environment(redis_url)
        with deliverer(environment, folder):
            receiver.await_taken(1, plan.patience_s)
            began_s = time.monotonic()
            receiver.await_taken(plan.deliveries // 2, plan.patience_s)
        on_the_way = _being_sent(stores, webhook.id)
        with deliverer(environment, folder):
            receiver.await_taken(plan.deliveries, plan.patience_s)
            duration_s = time.monotonic() - began_s
            _await_empty(stores, plan.patience_s)
        return Outcome(
            expected=expected,
            taken=receiver.taken,
            failures=receiver.failures,
            unsigned=receiver.unsigned,
            on_the_way=on_the_way,
            late=_late(stores, webhook.id, receiver.silences),
            duration_s=duration_s,
            given_up=stores.deliveries.count_given_up(webhook.id),
            queued=stores.deliveries.queued(),
        )


def _queue(stores: Stores, count: int) -> set[str]:
    """Append alerts to the log and queue them for all webhooks. Return their ids."""
    names = [f"alert-{number}" for number in range(count)]
    webhooks = stores.webhooks.all()
    for start in range(0, count, _CHUNK):
        rows = [
            sink_row(kind="alert", stream="s", id=name, body=orjson.dumps({"id": name, "stream": "s", "pattern": "p"}))
            for name in names[start : start + _CHUNK]
        ]
        stores.alerts.append(rows, webhooks, SystemClock().now_us())
    return set(names)


def _being_sent(stores: Stores, webhook: str) -> set[str]:
    """Return the ids of the deliveries that are currently leased."""
    keys: list[bytes] = stores.client.zrange(SENDING_KEY + webhook, 0, -1)  # type: ignore[assignment]
    return {key.decode().partition(":")[2] for key in keys}


def _late(stores: Stores, webhook: str, silences: Counter[str]) -> set[str]:
    """Return the ids that had more time-outs in the deliverer than unanswered attempts at the receiver."""
    attempts = stores.attempts(webhook).page(1_000_000).items
    missed = Counter(one["item"] for one in attempts if (one.get("error") or "").startswith("no answer"))
    return {name for name, count in missed.items() if count > silences[name]}


def _await_empty(stores: Stores, patience_s: float) -> None:
    end_s = time.monotonic() + patience_s
    while stores.deliveries.queued() and time.monotonic() < end_s:
        time.sleep(0.05)


def main() -> int:
    """Print the results. Return the exit status: 1 if there are faults."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deliveries", type=int, default=10_000)
    parser.add_argument("--failing", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    plan = Plan(deliveries=chosen.deliveries, failing=chosen.failing, seed=chosen.seed)
    with TemporaryDirectory() as folder:
        found = run(plan, Path(folder))
    attempts = found.taken.total() + found.failures.total()
    failed = ", ".join(f"{found.failures[fault]} {fault}" for fault in FAULTS)
    print(f"{len(found.taken)} of {plan.deliveries} alerts taken in {found.duration_s:.1f} s, one kill included")
    print(f"{len(found.taken) / found.duration_s:.0f} alerts/s, {attempts / found.duration_s:.0f} attempts/s")
    print(f"{attempts} attempts, {found.failures.total() / attempts:.1%} failed: {failed}")
    print(f"on their way at the kill: {len(found.on_the_way)}, of which sent again after success: ", end="")
    print(f"{len(found.again & found.on_the_way)}; sent again as answered too late: {len(found.again & found.late)}")
    print("faults: " + ("; ".join(found.faults) or "none"))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
