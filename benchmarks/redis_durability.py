"""Acknowledged entries that a killed Redis server loses, by ``appendfsync`` policy.

A private server is started in a fresh folder with the policy. One client appends entries, each after the previous entry
was acknowledged. At a seeded random time, the server is killed (SIGKILL) and started again on the same folder. An
acknowledged entry that is then missing is lost. Just before the kill, the server is asked for the number of unwritten
bytes of its file: during a sync, ``everysec`` delays writes for up to two seconds. Otherwise Redis writes before it
answers, and written data survive the process, because the kernel has them. So the figures show the loss after the death
of a process, not after a power loss. After a power loss, ``everysec`` loses everything since the last sync, and
``always`` only data that the disk wrongly reported as synced. The duration of a sync matters, so ``--load`` keeps the
disk busy with the given number of processes that write and sync in the same file system.

    scripts/bench redis_durability --kills=50 --load=2
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from service.embedded import EmbeddedServer
from service.errors import StoreUnavailable
from service.stores import connect

POLICIES = ("everysec", "always")
_TITLES = (
    "`appendfsync`",
    "kills that lost acknowledged entries",
    "most lost",
    "lost of acknowledged",
    "most held back, MB",
    "entries/s",
)
_KEY = "durability"
_PAGE = 100
_BLOCK_BYTES = 4_000_000
_LOAD_BYTES = 200_000_000  # then the file is written again from its start


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The effect of one kill.

    Attributes:
        acknowledged: The number of entries that the server had acknowledged.
        lost: The number of acknowledged entries that are missing.
        held_back_bytes: The bytes of the append-only file that were not yet written when the server was last asked.
        seconds: The time from the first entry to the kill.
    """

    acknowledged: int
    lost: int
    held_back_bytes: int
    seconds: float


class Appender:
    """A thread that appends numbered entries until the server stops answering."""

    def __init__(self, url: str, entry: bytes) -> None:
        self._url = url
        self._entry = entry
        self._thread = Thread(target=self._run, name="appender")
        self.acknowledged = 0

    def start(self) -> None:
        """Start appending."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the server stops answering."""
        self._thread.join()

    def _run(self) -> None:
        with connect(self._url, retries=0) as client:
            try:
                while True:
                    client.xadd(_KEY, {"number": self.acknowledged, "body": self._entry})
                    self.acknowledged += 1
            except StoreUnavailable:
                pass


def killed(folder: Path, policy: str, entry: bytes, after_s: float) -> Loss:
    """Append to a fresh server, kill it, start it again and compare the entries.

    Args:
        folder: The folder for the server's files.
        policy: The value of ``appendfsync``.
        entry: The body of each entry.
        after_s: The seconds until the kill.
    """
    server = EmbeddedServer(folder)
    url = server.start()
    with connect(url) as client:
        client.config_set("appendfsync", policy)
        appender = Appender(url, entry)
        begun = time.monotonic()
        appender.start()
        Event().wait(after_s)
        held_back = int(client.info("persistence")["aof_buffer_length"])
        os.kill(json.loads(server.record_file.read_text())["pid"], signal.SIGKILL)
        seconds = time.monotonic() - begun
    appender.join()
    try:
        found = set(_numbers(server.start()))
    finally:
        server.stop()
    lost = sum(number not in found for number in range(appender.acknowledged))
    return Loss(acknowledged=appender.acknowledged, lost=lost, held_back_bytes=held_back, seconds=seconds)


def _numbers(url: str) -> Iterator[int]:
    """Yield the numbers of all entries on the server."""
    after = "-"
    with connect(url) as client:
        while page := client.xrange(_KEY, min=after, count=_PAGE):
            yield from (int(fields[b"number"]) for _, fields in page)
            after = f"({page[-1][0].decode()}"


@contextmanager
def _busy_disk(folder: Path, processes: int) -> Iterator[None]:
    """Run processes that write and sync while the block runs."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(folder / f"load-{number}",)) for number in range(processes)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        for writer in writers:
            writer.kill()
            writer.join()


def _write(path: Path) -> None:
    block = random.Random(0).randbytes(_BLOCK_BYTES)
    while True:
        with path.open("wb") as file:
            for _ in range(_LOAD_BYTES // _BLOCK_BYTES):
                file.write(block)
                file.flush()
                os.fsync(file.fileno())


def main() -> None:
    """Print a table of the policies."""
    wanted = _arguments()
    chance = random.Random(wanted.seed)
    entry = chance.randbytes(wanted.bytes)
    moments = [chance.uniform(0.5, wanted.longest) for _ in range(wanted.kills)]
    print(
        f"{wanted.kills} kills after 0.5 to {wanted.longest:g} s, entries of {wanted.bytes:,} bytes, "
        f"{wanted.load} processes that keep the disk busy, seed {wanted.seed}"
    )
    print(f"| {' | '.join(_TITLES)} |")
    print("|---" * len(_TITLES) + "|")
    with TemporaryDirectory(prefix="forestall-bench-", dir=wanted.folder) as name, _busy_disk(Path(name), wanted.load):
        for policy in POLICIES:
            losses = []
            for number, moment in enumerate(moments):
                with TemporaryDirectory(prefix=f"{policy}-{number}-", dir=name) as folder:
                    losses.append(killed(Path(folder), policy, entry, moment))
            print(_row(policy, losses), flush=True)


def _row(policy: str, losses: list[Loss]) -> str:
    acknowledged = sum(loss.acknowledged for loss in losses)
    cells = [
        policy,
        f"{sum(loss.lost > 0 for loss in losses)} of {len(losses)}",
        f"{max(loss.lost for loss in losses):,}",
        f"{sum(loss.lost for loss in losses):,} of {acknowledged:,}",
        f"{max(loss.held_back_bytes for loss in losses) / 1e6:.1f}",
        f"{acknowledged / sum(loss.seconds for loss in losses):,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12, help="of each policy")
    parser.add_argument("--seed", type=int, default=7, help="of the moments, the same for each policy")
    parser.add_argument("--longest", type=float, default=5.0, help="until a kill, seconds")
    parser.add_argument("--bytes", type=int, default=100_000, help="of an entry")
    parser.add_argument("--load", type=int, default=0, help="processes that keep the disk busy")
    parser.add_argument("--folder", type=Path, help="on the disk in question; else where temporary files go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
