"""Reads untrusted XML into a tree of elements, within limits.

Document types are rejected, and with them entities and external files. Nothing is fetched. Sizes are checked during
parsing, before a complete tree exists, so the limits also bound time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import XMLParser, iterparse

from workflows.errors import ModelRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlLimits:
    """Limits for reading an untrusted XML document.

    ``tag_bytes`` limits each tag with its attributes, and each comment, from ``<`` to ``>``. The address of a namespace
    is limited because the parser repeats the address in the name of each element.
    """

    size_bytes: int = 10_000_000
    elements: int = 200_000
    depth: int = 100
    tag_bytes: int = 1_000_000
    namespace_chars: int = 250


LINE = "{forestall}line"
"""The attribute that the parser adds to every element: the number of the line on which the element begins."""

_CHUNK = 1 << 16


class _BoundExceeded(Exception):
    """A document exceeds a limit. The message names the limit."""


def parse_xml(content: bytes, limits: XmlLimits | None = None, make: Callable[..., Element] = Element) -> Element:
    """Parse an XML document and return its root. Names of elements have the form ``{namespace}local``.

    ``make`` is called with a tag and attributes to create each element. Each element has its line number as the
    attribute ``LINE``. The encoding is taken from the declaration, then from the byte order mark, and else is UTF-8.
    Errors give line and column where they are known.
    """
    most = limits or XmlLimits()
    if len(content) > most.size_bytes:
        raise ModelRefused([("", f"the file has {len(content):,} bytes; at most {most.size_bytes:,} are read")])
    builder = _BoundedBuilder(most, make)
    parser = XMLParser(target=builder, forbid_dtd=True)
    builder.line = lambda: parser.parser.CurrentLineNumber
    try:
        _feed_in_chunks(content, parser, most)
    except ParseError as error:
        line, column = error.position
        what = f"this is not well-formed XML: {str(error).partition(':')[0]}"
        raise ModelRefused([(f"line {line}, column {column + 1}", what)]) from error
    except DefusedXmlException as error:
        what = "the file has a document type or entities, which are refused; remove the DOCTYPE"
        raise ModelRefused([(_place(parser), what)]) from error
    except _BoundExceeded as error:
        raise ModelRefused([(_place(parser), f"the file is too large to be a model: {error}")]) from error
    except (LookupError, ValueError) as error:
        raise ModelRefused([("", f"the XML has an unsupported encoding: {error}; save it as UTF-8")]) from error
    return builder.close()


def root_name(content: bytes) -> str:
    """Return the name ``{namespace}local`` of the root. If possible, only the beginning of the document is read."""
    with suppress(ParseError, DefusedXmlException, LookupError, ValueError, StopIteration):
        _, root = next(iterparse(BytesIO(content[: XmlLimits().tag_bytes]), ("start",), forbid_dtd=True))
        return str(root.tag)
    return str(parse_xml(content).tag)


def looks_like_xml(content: bytes) -> bool:
    """Return whether the first character after white space is ``<``.

    The text may be in UTF-8, UTF-16 or an encoding that extends ASCII.
    """
    head = content[:_CHUNK]
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        head = head.removeprefix(mark)
    return head.replace(b"\0", b"").lstrip().startswith(b"<")


class _BoundedBuilder:
    def __init__(self, limits: XmlLimits, make: Callable[..., Element]) -> None:
        self._limits = limits
        self._builder = TreeBuilder(make)
        self._depth = 0
        self._elements = 0
        self.line: Callable[[], int] = int

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > self._limits.depth:
            raise _BoundExceeded(f"elements are nested more than {self._limits.depth} deep")
        if self._elements > self._limits.elements:
            raise _BoundExceeded(f"there are more than {self._limits.elements:,} elements")
        self._builder.start(tag, attributes).set(LINE, str(self.line()))

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(tag)

    def data(self, text: str) -> None:
        self._builder.data(text)

    def start_ns(self, prefix: str, address: str) -> None:
        if len(address) > self._limits.namespace_chars:
            raise _BoundExceeded(
                f"the namespace of prefix {prefix[:40]!r} has more than {self._limits.namespace_chars} characters"
            )

    def close(self) -> Element:
        return self._builder.close()


def _feed_in_chunks(content: bytes, parser: XMLParser, limits: XmlLimits) -> None:
    """Feed the parser with a document in chunks, and reject long tags.

    The parser scans an unfinished tag again with every chunk, so long tags would take quadratic time.
    """
    for start in range(0, len(content), _CHUNK):
        parser.feed(content[start : start + _CHUNK])
        if start + _CHUNK - parser.parser.CurrentByteIndex > limits.tag_bytes + _CHUNK:
            raise _BoundExceeded(f"a tag or a comment has more than {limits.tag_bytes:,} bytes")
    parser.close()


def _place(parser: XMLParser) -> str:
    return f"line {parser.parser.CurrentLineNumber}, column {parser.parser.CurrentColumnNumber + 1}"
