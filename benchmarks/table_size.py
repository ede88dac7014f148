"""Cost of a table of ten million rows: time and memory to read it, and memory of the processes that use it.

Rows have a text key, a number and a text. One process reads the rows from a file (CPU seconds, peak memory) and stores
the table. Then other processes open the table and look up random keys. For each process, a line has the CPU seconds to
open the table and the time of a lookup. When all processes have finished their lookups, it also has the process's
private memory and the memory that it shares with other processes (mapped files).

``scripts/bench table_size [--quick] [--rows N]``
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from streams.tables import TableDeclaration, TableFormat, Tables, TableVersion, keep_table

ROWS, PROCESSES, LOOKUPS = 10_000_000, 3, 1_000_000
_MIB = 1 << 20


def rows_of(size: int) -> pa.Table:
    """Return the rows of a table of customers."""
    numbers = np.arange(size)
    keys = pa.array(np.char.add("customer-", numbers.astype("U8")), pa.string())
    tiers = pa.array(np.array(["bronze", "silver", "gold"])[numbers % 3], pa.string())
    return pa.table({"customer": keys, "limit": pa.array(numbers % 1_000), "tier": tiers})


def read(path: Path, kind: TableFormat, sender: Connection) -> None:
    """Read the rows in this process. Send the table's version, and the time and memory used."""
    declaration = TableDeclaration(key=("customer",), types={"limit": "integer"})
    begun = time.process_time()
    version = keep_table(path, kind, declaration)
    sender.send((version.to_json(), time.process_time() - begun, _mib("status", "VmHWM")))


def look_up(version: TableVersion, sender: Connection, are_ready: Barrier) -> None:
    """Open a table in this process and look up random keys. Measure the memory once all processes have done so."""
    begun = time.process_time()
    tables = Tables().with_version(replace(version, name="customers"))
    opened = time.process_time() - begun
    sought = np.random.default_rng(7).integers(0, version.rows, LOOKUPS)
    for first in range(0, LOOKUPS, 1 << 16):
        keys = pa.array([f"customer-{number}" for number in sought[first : first + (1 << 16)]])
        begun_ns = time.thread_time_ns()
        tables.looked_up("customers", "limit", [keys], None)
        taken = (time.thread_time_ns() - begun_ns) / len(keys)
    are_ready.wait()
    sender.send((opened, taken, _mib("smaps_rollup", r"Private_\w+"), _mib("smaps_rollup", r"Shared_\w+")))
    are_ready.wait()


def _mib(file: str, name: str) -> float:
    """Return the sum of the lines with a name in a file of ``/proc/self``, in MiB."""
    text = Path("/proc/self", file).read_text(encoding="utf-8")
    return sum(map(int, re.findall(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE))) / 1024


def main(arguments: list[str]) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args(arguments)
    size = 100_000 if asked.quick else asked.rows
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    print(f"{size:,} rows\n\n| file | MiB | CPU s | most memory, MiB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        table, versions = rows_of(size), []
        parquet.write_table(table, Path(folder, "t.parquet"))
        csv.write_csv(table, Path(folder, "t.csv"))
        del table
        for kind in ("csv", "parquet"):
            path = Path(folder, f"t.{kind}")
            process = context.Process(target=read, args=(path, kind, sender))
            process.start()
            made, cpu_s, peak = receiver.recv()
            process.join()
            versions.append(TableVersion.from_json(made))
            print(f"| {kind} | {path.stat().st_size / _MIB:,.0f} | {cpu_s:.1f} | {peak:,.0f} |")
    print("\n| process | CPU s to open | ns per lookup | own memory, MiB | shared, MiB |\n|---|---|---|---|---|")
    are_ready = context.Barrier(PROCESSES)
    processes = [context.Process(target=look_up, args=(versions[0], sender, are_ready)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for number in range(1, PROCESSES + 1):
        opened, taken, own, shared = receiver.recv()
        print(f"| {number} | {opened:.2f} | {taken:,.0f} | {own:,.0f} | {shared:,.0f} |")
    for process in processes:
        process.join()


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
