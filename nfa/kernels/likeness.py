"""Matching of LIKE in conditions between steps. A LIKE pattern is a list of tokens, each with a failure link."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined

Int: TypeAlias = int | np.int32 | np.int64
Words: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

NIL = -1

# Tokens that are not bytes. The link AGAIN is not a token, but restarts at the next character of the text.
ANY_CHARACTER = 256
ANY_TEXT = 257
AGAIN = -2


@inlined
def resembles(code: Words, tokens: Int, size: Int, values: Words, data: Bytes, start: Int, end: Int) -> bool:
    """Return whether the text ``data[start:end]`` matches a LIKE pattern.

    The pattern is ``size`` tokens, followed by their failure links. The time is linear in the length of the text. There
    is one exception: a segment with ``_`` between two ``%`` multiplies the time by the segment's length.
    """
    at, token = start, np.int64(0)
    retry, wildcard = start, np.int64(NIL)
    links = tokens + size
    while at < end:
        values[-1] += 1
        token_code = code[tokens + token] if token < size else np.int64(NIL)
        if token_code == ANY_TEXT:
            wildcard, retry = token, at
            token += 1
            if token == size:
                return True
        elif token_code == ANY_CHARACTER:
            at = after_character(data, at, end)
            token += 1
        elif token_code == np.int64(data[at]):
            at += 1
            token += 1
        elif wildcard == NIL:
            return False
        elif code[links + token] == AGAIN:
            retry = after_character(data, retry, end)
            at, token = retry, wildcard + 1
        elif code[links + token] == NIL:
            at += 1
        else:
            token = code[links + token]
    while token < size and code[tokens + token] == ANY_TEXT:
        token += 1
    return bool(token == size)


@inlined
def after_character(data: Bytes, at: Int, end: Int) -> Int:
    """Return the position of the character after the one at ``at``, in a UTF-8 text."""
    at += 1
    while at < end and (data[at] & 0xC0) == 0x80:
        at += 1
    return at
