"""Models and mappings that people write, in YAML or JSON, as nodes."""

from __future__ import annotations

import math

import yaml

from streams import UnreadableText, decoded_text, line_of, read_document
from workflows.errors import ModelRefused

MAX_BYTES = 1_000_000
MAX_VALUES = 250_000  # keys and values; a tree of the most nodes, 10,000, has some 50,000


def read_node(content: bytes | str) -> yaml.Node:
    """The root of a YAML or JSON text."""
    try:
        return read_document(decoded_text(content, MAX_BYTES), MAX_VALUES).root
    except UnreadableText as error:
        raise ModelRefused([(f"line {line}" if line else "", message) for line, message in error.problems]) from error


def keys_of(node: yaml.Node) -> list[str]:
    """The keys of a mapping; none for other nodes."""
    return [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []


def number_of(node: yaml.Node) -> float | None:
    """The finite number that is written without quotes; None for anything else."""
    try:
        number = float(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def place_of(node: yaml.Node, path: str = "") -> str:
    """Path and line in words, such as ``tree.sequence[2].xor (line 7)``; a line alone without a path."""
    line = line_of(node)
    if line is None:
        return path
    return f"{path} (line {line})" if path else f"line {line}"
