"""The sink that writes results to Parquet files.

Each delivery is a digest with all its results, from which one file for each kind and day is written. The digest's id is
the name of the files, so a repeated delivery replaces its files. A file gets its name when it is complete, so readers
never see incomplete files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from service.delivery.transports.sending import Item, SendFailed, Sending
from service.errors import WebhookRefused
from streams import parse_time

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("pattern", pa.string()),
        ("version", pa.int32()),
        ("severity", pa.string()),
        ("key", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("body", pa.string()),
    ]
)
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,7}")
_TIMES = ("detected_at", "updated_at", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSink:
    """A folder for Parquet files as a sink. ``path`` is relative to the setting ``webhooks.folder``."""

    is_bulk: ClassVar[bool] = True

    path: str

    @property
    def address(self) -> str:
        return f"parquet:{self.path}"

    def check(self, sending: Sending) -> None:
        """Check that ``path`` is inside the folder to which sinks may write."""
        self._root(sending)

    def send(self, item: Item, sending: Sending) -> None:
        root, body = self._root(sending), orjson.loads(item.body)
        parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for kind, result in _results(body):
            time = next((result[name] for name in _TIMES if result.get(name)), body.get("until"))
            row = {name: result.get(name) for name in SCHEMA.names}
            row |= {"kind": kind, "time": parse_time(time) if time else None, "body": orjson.dumps(result).decode()}
            parts.setdefault((kind, time[:10] if time else "unknown"), []).append(row)
        try:
            for (kind, day), rows in parts.items():
                folder = root / kind / day
                folder.mkdir(parents=True, exist_ok=True)
                _written(folder, f"{item.id}.parquet", rows)
            if not parts:  # a test message
                root.mkdir(parents=True, exist_ok=True)
                _written(root, f".{item.id}.test", []).unlink()
        except OSError as error:
            raise SendFailed(f"{root} cannot be written: {error.strerror or error}") from error

    def _root(self, sending: Sending) -> Path:
        if sending.folder is None:
            raise WebhookRefused(
                "files cannot be written, as FORESTALL_WEBHOOKS__FOLDER is not set; it names the folder of all sinks",
                field="path",
            )
        folder = sending.folder.resolve()
        root = (folder / self.path).resolve() if _PATH.fullmatch(self.path) else folder
        if not root.is_relative_to(folder) or root == folder:
            raise WebhookRefused(
                f"{self.path[:100]!r} is not a folder inside that of the sinks; write names of letters, digits, '.', "
                "'_' and '-', such as shop/alerts, which lead out of it by no link",
                field="path",
            )
        return root


def _results(body: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the results of a digest as pairs of kind and result, or an empty list for a test message."""
    if body.get("type") == "digest":
        return list(zip(body["kinds"], body["results"], strict=True))
    return []


def _written(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    draft, path = folder / f".{name}.{uuid4().hex}", folder / name
    try:
        with draft.open("wb") as file:
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
