"""The kernel that reads event objects from JSON lines, into the spans of their members and numeric times.

Nothing is copied, and only plain cases of JSON are accepted. If a line is unusual in any way (an escape in a name, a
large number, a repeated member), it is marked as unusual. Other code parses it, and may find that it is valid.

Functions that run on every line are inlined, because passing a dozen arrays took longer than examining a member.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine

Int: TypeAlias = int | np.int64

# Kinds of lines.
BLANK = 0
EVENT = 1
UNUSUAL = 2

# Members by number, and the columns of ``Lines.spans``; the time is a number in ``Lines.times``.
ID, TYPE, KEY, DATA, TIME, OTHER = 0, 1, 2, 3, 4, 5
N_SPANS = 4
CODE_BYTES = 8  # all names but the key's differ in their first 8 bytes
CODE_BITS, BYTE_BITS = np.uint64(64), np.uint64(8)

NOWHERE = -1  # index of a missing or unusual value
DEEPEST = 64  # levels of nested containers
NO_NUMBER = -1 << 40
_MOST_DIGITS = 18  # an integer of so few digits fits into 64 bits

QUOTE, BACKSLASH, COLON, COMMA = np.uint8(34), np.uint8(92), np.uint8(58), np.uint8(44)
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = np.uint8(123), np.uint8(125), np.uint8(91), np.uint8(93)
SPACE, TAB, RETURN, NEWLINE = np.uint8(32), np.uint8(9), np.uint8(13), np.uint8(10)
ZERO, NINE, MINUS, PLUS, POINT = np.uint8(48), np.uint8(57), np.uint8(45), np.uint8(43), np.uint8(46)
LETTER_T, LETTER_Z = np.uint8(84), np.uint8(90)

# Letters after a backslash that encode one character; u is not one of them.
IS_ESCAPE = np.isin(np.arange(256), np.frombuffer(b'"\\/bfnrt', np.uint8))

_DAY_US = 86_400_000_000


class LineForm(NamedTuple):
    """How lines are read: the names of the required members, the place of the key, and the form of times."""

    codes: NDArray[np.uint64]  # (OTHER,) the first eight bytes of each member's name
    key: NDArray[np.uint8]  # name of the key
    members: int  # one bit for each required member
    is_key_inside: bool  # the key is a member of the data
    reads_time: bool
    knows_unit: bool  # whether numbers that are times are microseconds
    least: NDArray[np.int64]  # otherwise: the least numbers in seconds, milliseconds, microseconds


class Lines(NamedTuple):
    """The results by line: its kind (``BLANK``, ``EVENT`` or ``UNUSUAL``), the spans of its members, and its time."""

    kinds: NDArray[np.uint8]
    spans: NDArray[np.int64]  # (lines, N_SPANS, 2) first byte, and the byte after the last
    times: NDArray[np.int64]  # us
    starts: NDArray[np.int64]  # first byte of the line


@inlined
def skip_space(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the index of the next byte other than space, tab and carriage return."""
    while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@inlined
def is_digit(byte: np.uint8) -> bool:
    """Return whether a byte is one of 0 to 9."""
    return bool(ZERO <= byte <= NINE)


@inlined
def plain_string(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the index of the closing quote of a string whose contents begin at ``at``.

    It is -1 if the string contains an escape or does not end.
    """
    while text[at] != QUOTE:
        if text[at] == BACKSLASH or text[at] < SPACE:
            return -1
        at += 1
    return at


@routine
def any_string(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the index of a string's closing quote, as ``plain_string`` does. Escapes of one letter are allowed."""
    while text[at] != QUOTE:
        if text[at] < SPACE:
            return -1
        if text[at] == BACKSLASH:
            at += 1
            if not IS_ESCAPE[text[at]]:
                return -1
        at += 1
    return at


@routine
def number(text: NDArray[np.uint8], at: Int) -> tuple[Int, bool]:
    """Return the index after a number, and whether the number is an integer.

    The index is -1 for large numbers, exponents, and values that are not numbers.
    """
    if text[at] == MINUS:
        at += 1
    first = at
    while is_digit(text[at]):
        at += 1
    if at == first or at - first > _MOST_DIGITS or (text[first] == ZERO and at - first > 1):
        return -1, False
    if text[at] == 101 or text[at] == 69:
        return -1, False
    if text[at] != POINT:
        return at, True
    first = at + 1
    at = first
    while is_digit(text[at]):
        at += 1
    if at == first or text[at] == 101 or text[at] == 69:
        return -1, False
    return at, False


@routine
def literal(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the index after true, false or null. Return -1 for any other value."""
    if text[at] == 116 and text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101:
        return at + 4
    if text[at] == 110 and text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108:
        return at + 4
    if text[at] == 102 and text[at + 1] == 97 and text[at + 2] == 108 and text[at + 3] == 115 and text[at + 4] == 101:
        return at + 5
    return -1


@routine
def scalar(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the index after a text, number or literal that begins at ``at``. Return -1 if it is invalid or unusual."""
    byte = text[at]
    if byte == QUOTE:
        end = any_string(text, at + 1)
        return end + 1 if end >= 0 else -1
    if byte == MINUS or is_digit(byte):
        end, _ = number(text, at)
        return end
    return literal(text, at)


@inlined
def member_name(text: NDArray[np.uint8], at: Int) -> tuple[Int, Int, np.uint64]:
    """Read the name of a member that begins at ``at``, and return (place, end, code).

    ``place`` is the index of the member's value, or -1 if the name is missing or unusual. ``end`` is the index after
    the name. ``code`` has the first eight bytes of the name as a number.
    """
    if text[at] != QUOTE:
        return NOWHERE, at, np.uint64(0)
    at += 1
    code, shift = np.uint64(0), np.uint64(0)
    while text[at] != QUOTE:
        byte = text[at]
        if byte == BACKSLASH or byte < SPACE:
            return NOWHERE, at, code
        if shift < CODE_BITS:
            code |= np.uint64(byte) << shift
            shift += BYTE_BITS
        at += 1
    end = at
    at = skip_space(text, at + 1)
    if text[at] != COLON:
        return NOWHERE, end, code
    return skip_space(text, at + 1), end, code


@routine
def first_inside(text: NDArray[np.uint8], at: Int) -> tuple[Int, bool]:
    """Return the index of the first value in a container that begins at ``at``, and whether the container is empty.

    If the container is empty, the index is the one after the container. If the container is unusual, it is -1.
    """
    is_object = text[at] == OPEN
    at = skip_space(text, at + 1)
    if text[at] == (CLOSE if is_object else CLOSE_LIST):
        return at + 1, True
    if is_object:
        at, _, _ = member_name(text, at)
    return at, False


@routine
def close_containers(text: NDArray[np.uint8], at: Int, inside: NDArray[np.bool_], depth: Int) -> tuple[Int, Int]:
    """Read the commas and closing brackets after a value. Return the index of the next value, and its depth.

    The depth is the number of containers around the value. If no container remains, the index is the one after the last
    container. If the text is invalid or unusual, the index is -1. ``inside`` says of each open container whether it is
    an object.
    """
    while depth > 0:
        at = skip_space(text, at)
        is_object = inside[depth - 1]
        if text[at] == COMMA:
            at = skip_space(text, at + 1)
            if is_object:
                at, _, _ = member_name(text, at)
            return at, depth
        if text[at] != (CLOSE if is_object else CLOSE_LIST):
            return -1, depth
        depth -= 1
        at += 1
    return at, depth


@inlined
def value(text: NDArray[np.uint8], at: Int, inside: NDArray[np.bool_]) -> Int:
    """Return the index after the JSON value that begins at ``at``, or -1 if it is invalid or unusual.

    The text ends with a line feed. ``inside`` is work space of ``DEEPEST`` flags. A flag says whether an open container
    is an object.
    """
    depth: Int = np.int64(0)
    while at >= 0:
        if text[at] != OPEN and text[at] != OPEN_LIST:
            at = scalar(text, at)
        elif depth == DEEPEST:
            return -1
        else:
            inside[depth] = text[at] == OPEN
            at, is_empty = first_inside(text, at)
            if not is_empty:
                depth += 1
                continue
        if at >= 0:
            at, depth = close_containers(text, at, inside, depth)
        if depth == 0:
            return at
    return at


@inlined
def is_same(text: NDArray[np.uint8], first: Int, end: Int, name: NDArray[np.uint8]) -> bool:
    """Check whether the text from ``first`` to ``end`` equals a name."""
    if end - first != name.shape[0]:
        return False
    equal = True
    for place in range(end - first):
        equal &= bool(text[first + place] == name[place])
    return equal


@inlined
def name_value(text: NDArray[np.uint8], at: Int) -> tuple[Int, Int, Int]:
    """Read an id or key at ``at``, a non-empty text or an integer.

    Return the index after it, and first and end of its text. The index is -1 for any other value.
    """
    if text[at] == QUOTE:
        end = plain_string(text, at + 1)
        return (end + 1 if end > at + 1 else NOWHERE), at + 1, end
    if not is_digit(text[at]):
        return NOWHERE, at, at
    end, is_integer = number(text, at)
    return (end if is_integer else NOWHERE), at, end


@inlined
def data_value(text: NDArray[np.uint8], at: Int, form: LineForm, inside: NDArray[np.bool_]) -> tuple[Int, Int, Int]:
    """Read the attributes, an object at ``at``.

    Return the index after it, and first and end of the key among the attributes. The index is -1 if the attributes are
    not an object, or are unusual.
    """
    if text[at] != OPEN:
        return NOWHERE, 0, 0
    if not form.is_key_inside:
        return value(text, at, inside), 0, 0
    n_found, first, last, key, key_code = 0, at, at, form.key, form.codes[KEY]
    at = skip_space(text, at + 1)
    while text[at] == QUOTE:
        name = at + 1
        at, end, code = member_name(text, at)
        if at >= 0 and code == key_code and is_same(text, name, end, key):
            n_found += 1
            at, first, last = name_value(text, at)
        elif at >= 0:
            at = value(text, at, inside)
        if at < 0:
            return NOWHERE, first, last
        at = skip_space(text, at)
        if text[at] == CLOSE:
            return (at + 1 if n_found == 1 else NOWHERE), first, last
        if text[at] != COMMA:
            break
        at = skip_space(text, at + 1)
    return NOWHERE, first, last


@inlined
def pair(text: NDArray[np.uint8], at: Int) -> Int:
    """Return the number that the two digits at ``at`` form, or a number far below 0 if they are not digits."""
    if not (is_digit(text[at]) and is_digit(text[at + 1])):
        return NO_NUMBER
    return 10 * np.int64(text[at] - ZERO) + np.int64(text[at + 1] - ZERO)


@routine
def digits(text: NDArray[np.uint8], at: Int, end: Int) -> Int:
    """Return the number that the digits from ``at`` to ``end`` form."""
    total = np.int64(0)
    for place in range(at, end):
        total = 10 * total + np.int64(text[place] - ZERO)
    return total


@routine
def days_before(year: Int, month: Int, day: Int) -> Int:
    """Return the days from 1970-01-01 to a day of the Gregorian calendar, or -1 << 60 if the day does not exist."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 31 - ((month == 4) + (month == 6) + (month == 9) + (month == 11))
    if month == 2:
        days = 29 if is_leap else 28
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= days):
        return -1 << 60
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - 400 * era
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@routine
def written_time(text: NDArray[np.uint8], at: Int, end: Int) -> tuple[bool, Int]:
    """Return whether the text between two indices is a time in RFC 3339, and the time in microseconds.

    The flag is False for invalid texts and also for rare forms.
    """
    if end - at < 20 or text[at + 4] != MINUS or text[at + 7] != MINUS or text[at + 10] != LETTER_T:
        return False, 0
    if text[at + 13] != COLON or text[at + 16] != COLON:
        return False, 0
    day = days_before(100 * pair(text, at) + pair(text, at + 2), pair(text, at + 5), pair(text, at + 8))
    hour, minute, second = pair(text, at + 11), pair(text, at + 14), pair(text, at + 17)
    if day == -1 << 60 or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return False, 0
    time_us = day * _DAY_US + (hour * 3_600 + minute * 60 + second) * 1_000_000
    at += 19
    if text[at] == POINT:
        at += 1
        scale = 100_000
        while is_digit(text[at]) and scale > 0:
            time_us += scale * np.int64(text[at] - ZERO)
            scale //= 10
            at += 1
        if scale == 100_000:
            return False, 0
    if text[at] == LETTER_Z:
        return at + 1 == end, time_us
    if end - at != 6 or not (text[at] == PLUS or text[at] == MINUS) or text[at + 3] != COLON:
        return False, 0
    hour, minute = pair(text, at + 1), pair(text, at + 4)
    if not (0 <= hour < 24 and 0 <= minute < 60):
        return False, 0
    offset = (hour * 60 + minute) * 60_000_000
    return True, time_us + offset if text[at] == MINUS else time_us - offset


@inlined
def microseconds(number: Int, form: LineForm) -> Int:
    """Convert a number to microseconds, from the unit that ``form`` names. Without a unit, the magnitude decides."""
    size = abs(number)
    if form.knows_unit or size < form.least[0] or size >= form.least[2]:
        return number
    return number * (1_000_000 if size < form.least[1] else 1_000)


@inlined
def time_value(text: NDArray[np.uint8], at: Int, form: LineForm) -> tuple[Int, Int]:
    """Read a time at ``at``, a text or a number. Return the index after it, and the time in microseconds.

    The index is -1 if the time is invalid or unusual.
    """
    if text[at] == QUOTE:
        end = plain_string(text, at + 1)
        if end < 0:
            return NOWHERE, 0
        is_time, time_us = written_time(text, at + 1, end)
        return (end + 1 if is_time else NOWHERE), time_us
    is_negative = text[at] == MINUS
    if not (is_negative or is_digit(text[at])):
        return NOWHERE, 0
    end, is_integer = number(text, at)
    if not is_integer:
        return NOWHERE, 0
    size = digits(text, at + is_negative, end)
    return end, microseconds(-size if is_negative else size, form)


@inlined
def member_value(
    text: NDArray[np.uint8], at: Int, form: LineForm, line: Lines, row: Int, member: Int, inside: NDArray[np.bool_]
) -> Int:
    """Read a member's value, store its place in ``line``, and return the index after the value.

    ``member`` is the number of a known member (``ID``, ``TYPE``, ...). The value of another member is skipped. If
    ``form.reads_time`` is true, a time is stored as a number instead. The index is -1 if the kernel does not accept
    the value.
    """
    spans = line.spans
    if member == TIME and form.reads_time:
        at, line.times[row] = time_value(text, at, form)
    elif member == DATA:
        spans[row, DATA, 0] = at
        at, first, end = data_value(text, at, form, inside)
        spans[row, DATA, 1] = at
        if form.is_key_inside:
            spans[row, KEY, 0], spans[row, KEY, 1] = first, end
    elif member >= TIME:
        at = value(text, at, inside)
    elif member == TYPE and text[at] != QUOTE:
        at = NOWHERE
    else:
        at, spans[row, member, 0], spans[row, member, 1] = name_value(text, at)
    return at


@inlined
def event_object(
    text: NDArray[np.uint8], at: Int, form: LineForm, line: Lines, row: Int, inside: NDArray[np.bool_]
) -> Int:
    """Read the members of an event object into row ``row`` of ``line``. The first member is at ``at``.

    Return the index after the object, or -1 if the object is unusual.
    """
    codes, key = form.codes, form.key
    seen = 0
    line.spans[row, DATA, 0] = line.spans[row, DATA, 1] = 0
    while True:
        name = at + 1
        at, end, code = member_name(text, at)
        if at < 0:
            return NOWHERE
        member = 0
        while member < OTHER and code != codes[member]:
            member += 1
        is_short = end - name <= CODE_BYTES
        if member == KEY:
            is_short = not form.is_key_inside and is_same(text, name, end, key)
        if not is_short:
            member = OTHER
        if member != OTHER and seen & (1 << member):
            return NOWHERE
        seen |= 1 << member
        at = member_value(text, at, form, line, row, member, inside)
        if at < 0:
            return NOWHERE
        at = skip_space(text, at)
        if text[at] != COMMA:
            break
        at = skip_space(text, at + 1)
    if text[at] != CLOSE or (seen & form.members) != form.members:
        return NOWHERE
    return at + 1


@kernel
def read_lines(text: NDArray[np.uint8], form: LineForm, line: Lines, inside: NDArray[np.bool_]) -> Int:
    """Read every line of a UTF-8 text into ``line``, and return the number of lines.

    The text ends with a line feed. ``line`` has room for every line, ``inside`` for ``DEEPEST`` flags.
    """
    text, form, line, inside = borrowed(text), borrowed(form), borrowed(line), borrowed(inside)
    at: Int = np.int64(0)
    row: Int = np.int64(0)
    while at < text.shape[0]:
        line.starts[row] = at
        begin = skip_space(text, at)
        end = begin
        if text[begin] == NEWLINE:
            line.kinds[row] = BLANK
        else:
            end = NOWHERE
            if text[begin] == OPEN:
                end = event_object(text, skip_space(text, begin + 1), form, line, row, inside)
            if end >= 0:
                end = skip_space(text, end)
            if end >= 0 and text[end] == NEWLINE:
                line.kinds[row] = EVENT
            else:
                line.kinds[row] = UNUSUAL
                end = begin
                while text[end] != NEWLINE:
                    end += 1
        at = end + 1
        row += 1
    return row


@kernel
def copy_spans(
    text: NDArray[np.uint8], spans: NDArray[np.int64], offsets: NDArray[np.int32], room: NDArray[np.uint8]
) -> None:
    """Copy spans of a text into ``room``, one after another. ``offsets`` has the index at which each copy begins."""
    for row in range(spans.shape[0]):
        first, target = spans[row, 0], offsets[row]
        for place in range(spans[row, 1] - first):
            room[target + place] = text[first + place]
