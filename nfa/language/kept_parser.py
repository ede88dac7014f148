"""Keeps the tables of a parser for the next process: lark takes ten times as long to build them as to read them.

They are in a file of the ``kept_folder``, named by everything they were made from; lark reads them by pickle. Where no
folder can be trusted, tables are built each time.
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
    """The parser of a grammar, from its file if there is one; else it is built, and kept if it can be.

    Args:
        grammar: In lark's notation.
        options: Of ``lark.Lark``; plain values.
    """
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
    """The tables in a file; none where it is damaged or being written.

    Raises:
        OSError: It cannot be read.
        KeptFolderRefused: It may be from another user.
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
