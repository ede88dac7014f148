"""A cache of parser tables for later processes: lark takes ten times as long to build them as to read them.

They are in a file of the ``kept_folder``, under a name made from everything they depend on; lark reads them by pickle.
If no folder can be trusted, tables are built each time.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark

from streams import KeptFolderRefused, kept_folder, make_kept_folder, note_use, require_trusted

_KIND = "grammars"
_DIGEST_BYTES = 32


def kept_parser(grammar: str, options: Mapping[str, Any]) -> lark.Lark:
    """The parser of a lark grammar, from its file if possible; otherwise it is built, and saved if possible."""
    parts = (grammar, lark.__version__, sys.version, sorted(options.items()))
    name = sha256(repr(parts).encode()).hexdigest()[:16]
    with suppress(OSError, KeptFolderRefused):
        if tables := _read(kept_folder(_KIND) / name):
            return lark.Lark.load(io.BytesIO(tables))
    parser = lark.Lark(grammar, **options)
    with suppress(OSError, KeptFolderRefused):
        _write(kept_folder(_KIND) / name, parser)
    return parser


def _read(place: Path) -> bytes:
    """The tables in a file; empty if the file is damaged or being written.

    Raises OSError if the file cannot be read, KeptFolderRefused if it may be from another user.
    """
    require_trusted(place.parent)
    content = place.read_bytes()
    note_use(place)
    digest, tables = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return tables if sha256(tables).digest() == digest else b""


def _write(place: Path, parser: lark.Lark) -> None:
    make_kept_folder(place.parent)
    tables = io.BytesIO()
    parser.save(tables)
    place.write_bytes(sha256(tables.getvalue()).digest() + tables.getvalue())
