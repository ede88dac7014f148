"""Functions of texts. Characters are code points, and case and white space follow Unicode, as in Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.functions.function import Function, Parameter, Result, of_each, of_each_distinct

_SURROGATES = re.compile("[\ud800-\udfff]")
_TOKENS = re.compile(  # the tokens of regular expressions
    r"\\[xpP]\{\w*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL
)
_MOST_STATES = 1_000
MOST_JOINED = 65_536  # characters; without a limit, texts could grow from one derived event to the next
_TEXT = Parameter("text", "text")
_PART = Parameter("part", "text")


def _part_of(text: str, start: float, length: float | None = None) -> str | None:
    """Return the part of a text from ``start`` on, at most ``length`` characters long.

    ``start`` counts from 1 or, if negative, from the end of the text. The result is None if ``start`` is 0, ``length``
    is negative, or either is not a whole number.
    """
    if start != int(start) or start == 0 or (length is not None and (length != int(length) or length < 0)):
        return None
    first = int(start) - 1 if start > 0 else max(0, len(text) + int(start))
    return text[first:] if length is None else text[first : first + int(length)]


def _joined(*parts: str) -> str | None:
    return "".join(parts) if sum(map(len, parts)) <= MOST_JOINED else None


def _matches(texts: Sequence[str], pattern: str) -> NDArray[np.bool_]:
    """Test each text against a regular expression.

    Surrogates are replaced by U+FFFD, because RE2 does not support them.
    """
    valid_texts = pa.array([_SURROGATES.sub("\ufffd", text) for text in texts], pa.string())
    is_match: NDArray[np.bool_] = pc.match_substring_regex(valid_texts, pattern).to_numpy(zero_copy_only=False)
    return is_match.astype(np.bool_)


def _fault_of_expression(pattern: Any) -> str | None:
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        return f"it is not a regular expression of RE2 ({reason}); RE2 has neither references back nor look-around"
    if (size := _states_of(pattern)) > _MOST_STATES:
        return (
            f"it has about {size:,} states: characters, each as often as {{n,m}} repeats it; at most {_MOST_STATES:,}"
        )
    return None


def _states_of(pattern: str) -> int:
    """Return the number of states of a regular expression. A test takes time up to this number for each character."""
    sizes, last = [0], 0
    for token in _TOKENS.finditer(pattern):
        if token[0] == "(":
            sizes.append(0)
            continue
        if token[1] is not None:
            times = max(1, int(token[1]), int(token[2] or 0))
            sizes[-1] += last * (times - 1)
            last *= times
            continue
        last = sizes.pop() if token[0] == ")" and len(sizes) > 1 else 1
        sizes[-1] += last
    return sum(sizes)


def _in_networks(texts: Sequence[str], *networks: str) -> Result:
    parsed_networks = [ip_network(network, strict=False) for network in networks]

    def is_in(text: str) -> bool | None:
        try:
            address = ip_address(text)
        except ValueError:
            return None
        plain_address = getattr(address, "ipv4_mapped", None) or address  # ::ffff:10.1.2.3 equals 10.1.2.3
        return any(plain_address in network or address in network for network in parsed_networks)

    return of_each_distinct(is_in, texts)


def _fault_of_network(network: Any) -> str | None:
    try:
        ip_network(network, strict=False)
    except ValueError as error:
        return f"it is not a network ({error}); write one such as '10.0.0.0/8'"
    return None


FUNCTIONS = (
    Function(
        "lower", (_TEXT,), "text", of_each(str.lower), "The text in lower case.", (("lower('Äpfel')", "'äpfel'"),)
    ),
    Function(
        "upper", (_TEXT,), "text", of_each(str.upper), "The text in upper case.", (("upper('straße')", "'STRASSE'"),)
    ),
    Function(
        "trim",
        (_TEXT,),
        "text",
        of_each(str.strip),
        "The text without white space at both ends.",
        (("trim('  a b ')", "'a b'"),),
    ),
    Function(
        "length",
        (_TEXT,),
        "number",
        of_each(len),
        "The number of characters.",
        (("length('Äpfel')", "5"), ("length('')", "0")),
    ),
    Function(
        "substr",
        (_TEXT, Parameter("start", "number"), Parameter("length", "number")),
        "text",
        of_each(_part_of),
        "The characters from `start` on, at most `length`. `start` counts from 1, or from the end if it is "
        "negative; null for 0, for fractions and for a negative length.",
        (("substr('DE-4711', 4)", "'4711'"), ("substr('DE-4711', 1, 2)", "'DE'"), ("substr('abc', -1)", "'c'")),
        optional=1,
    ),
    Function(
        "concat",
        (_TEXT,),
        "text",
        of_each(_joined),
        f"The texts one after the other; null if they have more than {MOST_JOINED:,} characters.",
        (("concat('DE', '-', '4711')", "'DE-4711'"), ("concat('DE', NULL)", "NULL")),
        is_repeated=True,
    ),
    Function(
        "contains",
        (_TEXT, _PART),
        "boolean",
        of_each(str.__contains__),
        "Whether the text contains another.",
        (("contains('gift card', 'card')", "TRUE"), ("contains('gift', 'Gift')", "FALSE")),
    ),
    Function(
        "starts_with",
        (_TEXT, _PART),
        "boolean",
        of_each(str.startswith),
        "Whether the text begins with another.",
        (("starts_with('DE-4711', 'DE')", "TRUE"),),
    ),
    Function(
        "ends_with",
        (_TEXT, _PART),
        "boolean",
        of_each(str.endswith),
        "Whether the text ends with another.",
        (("ends_with('a@example.org', '.com')", "FALSE"),),
    ),
    Function(
        "matches",
        (_TEXT, Parameter("expression", "text", _fault_of_expression)),
        "boolean",
        _matches,
        "Whether a part of the text matches a regular expression of RE2, which takes time linear in the text; "
        "`^` and `$` are the ends of the text.",
        (("matches('DE-4711', '^[A-Z]{2}-[0-9]+$')", "TRUE"), ("matches('a', '^$')", "FALSE")),
    ),
    Function(
        "cidr",
        (Parameter("address", "text"), Parameter("network", "text", _fault_of_network)),
        "boolean",
        _in_networks,
        "Whether an IPv4 or IPv6 address is in one of the networks; null if the text is not an address.",
        (("cidr('10.1.2.3', '10.0.0.0/8', 'fd00::/8')", "TRUE"), ("cidr('::ffff:10.1.2.3', '10.0.0.0/8')", "TRUE")),
        is_repeated=True,
    ),
)
