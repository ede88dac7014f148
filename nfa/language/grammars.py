"""Parsing of texts by a lark grammar. Every refusal has line, column and a correction.

Building parser tables takes lark ten times as long as reading them. Therefore they are kept in a file for later
processes, in the ``kept_folder``, under a hash of everything on which the tables depend. Reading uses pickle, which can
run code. If the folder cannot be trusted, each process builds its own tables.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import lark
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from nfa.errors import PatternRefused
from nfa.language.expression_building import Branch
from nfa.language.limits import check_text, position_at
from nfa.language.words import listed
from nfa.syntax import Position
from streams import KeptFolderRefused, kept_folder, make_kept_folder, note_use, require_trusted

_KIND = "grammars"
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Grammar:
    """The grammar in the file ``grammar.lark`` of a package.

    Attributes:
        package: The import name of the package.
        starts: The rules with which parsing may start.
        called: The name of each terminal in messages.
        advise: Finds the word that cannot be read, for an error message. Its arguments are the text, the index at which
            parsing stopped, the terminals that are acceptable at this index, and the usual advice. It returns three
            values: the word, how many characters before the index the word begins, and the advice to give.
    """

    package: str
    starts: tuple[str, ...]
    called: Mapping[str, str]
    advise: Callable[[str, int, set[str], str], tuple[str, int, str]]

    def tree(self, text: str, start: str) -> Branch:
        """Parse a text by the grammar rule ``start``."""
        check_text(text)
        try:
            return self._parser.parse(text, start=start)
        except UnexpectedInput as error:
            acceptable = self._acceptable(text, start)
            names = {self.called.get(name, name.removeprefix("_")) for name in acceptable}
            advice = f"expected {listed(sorted(names))}"
            if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
                position, problem = position_at(text, len(text)), "the text ends"
            else:
                word, back, advice = self.advise(text, error.pos_in_stream or 0, acceptable, advice)
                position, problem = Position(error.line, error.column - back), f"unexpected {word!r}"
            raise PatternRefused("syntax", f"{problem}; {advice}", position) from None  # lark's message is vague

    @cached_property
    def _parser(self) -> lark.Lark:
        options = {"parser": "lalr", "lexer": "contextual", "propagate_positions": True, "maybe_placeholders": False}
        grammar = files(self.package).joinpath("grammar.lark").read_text(encoding="utf-8")
        return kept_parser(grammar, {"start": list(self.starts), **options})

    def _acceptable(self, text: str, start: str) -> set[str]:
        interactive = self._parser.parse_interactive(text, start=start)
        with suppress(UnexpectedInput):
            interactive.exhaust_lexer()
        return cast("set[str]", interactive.accepts())  # type: ignore[no-untyped-call]


def kept_parser(grammar: str, options: Mapping[str, Any]) -> lark.Lark:
    """Return the parser of a lark grammar. The parser is read from its file if possible, otherwise built and saved."""
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
    """Return the content of a saved parser, or no bytes if the file is damaged or being written.

    Raises:
        KeptFolderRefused: The file may be from another user.
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
