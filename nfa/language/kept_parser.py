"""Keeps the tables of a parser for the next process: lark takes ten times as long to build them as to read them.

They are in a file of ``kept_folder``, named by all that they come of; lark reads them by pickle. Where there is no
folder that can be trusted, tables are built each time.
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

from nfa.kept_folder import is_trusted, kept_folder, make_kept_folder

_DIGEST_BYTES = 32


def kept_parser(grammar: str, options: Mapping[str, Any]) -> lark.Lark:
    """The parser of a grammar, from its file if there is one; else it is built, and kept if it can be.

    Args:
        grammar: In lark's notation.
        options: Of ``lark.Lark``; plain values.
    """
    parts = (grammar, lark.__version__, sys.version, sorted(options.items()))
    place = kept_folder(__package__, __file__) / f"grammar-{sha256(repr(parts).encode()).hexdigest()[:16]}"
    with suppress(OSError):
        if tables := _read(place):
            return lark.Lark.load(io.BytesIO(tables))
    parser = lark.Lark(grammar, **options)
    with suppress(OSError):
        _write(place, parser)
    return parser


def _read(place: Path) -> bytes:
    """The tables in a file; none where it is damaged, or being written, or may be from somebody else."""
    if not is_trusted(place.parent):
        return b""
    content = place.read_bytes()
    digest, tables = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return tables if sha256(tables).digest() == digest else b""


def _write(place: Path, parser: lark.Lark) -> None:
    make_kept_folder(place.parent)
    if not is_trusted(place.parent):
        return
    tables = io.BytesIO()
    parser.save(tables)
    place.write_bytes(sha256(tables.getvalue()).digest() + tables.getvalue())
