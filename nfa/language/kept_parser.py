"""Keeps the tables of a parser for the next process: lark takes ten times as long to build them as to read them.

They are where the compiled kernels are, in ``$NUMBA_CACHE_DIR`` or else beside the bytecode of this package, in a file
named by all that they come of. lark reads them by pickle, so a folder counts only if nobody but its owner and his group
may write to it and the owner is this user or root. Where there is no such folder, tables are built each time.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark

_DIGEST_BYTES = 32


def kept_parser(grammar: str, options: Mapping[str, Any]) -> lark.Lark:
    """The parser of a grammar, from its file if there is one; else it is built, and kept if it can be.

    Args:
        grammar: In lark's notation.
        options: Of ``lark.Lark``; plain values.
    """
    parts = (grammar, lark.__version__, sys.version, sorted(options.items()))
    place = _folder() / f"grammar-{sha256(repr(parts).encode()).hexdigest()[:16]}"
    with suppress(OSError):
        if tables := _read(place):
            return lark.Lark.load(io.BytesIO(tables))
    parser = lark.Lark(grammar, **options)
    with suppress(OSError):
        _write(place, parser)
    return parser


def _folder() -> Path:
    # house: allow environment: numba's own variable, which says where compiled things are
    top = os.environ.get("NUMBA_CACHE_DIR", "")
    return Path(top) / __package__ if top else Path(__file__).with_name("__pycache__")


def _read(place: Path) -> bytes:
    """The tables in a file; none where it is damaged, or being written, or may be from somebody else."""
    if not _is_trusted(place.parent):
        return b""
    content = place.read_bytes()
    digest, tables = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return tables if sha256(tables).digest() == digest else b""


def _write(place: Path, parser: lark.Lark) -> None:
    place.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.parent.mkdir(exist_ok=True, mode=0o700)
    if not _is_trusted(place.parent):
        return
    tables = io.BytesIO()
    parser.save(tables)
    place.write_bytes(sha256(tables.getvalue()).digest() + tables.getvalue())


def _is_trusted(folder: Path) -> bool:
    """Whether nobody else can have put anything into a folder, or another folder in its place."""
    for place in (folder, folder.parent):
        found = place.stat()
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
            return False
    return True
