"""The keywords of the language, which must be quoted to be names, and the words by which messages call terminals."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Words that may follow a step's type or alias. The grammar cannot distinguish them from a name there.
STEP_WORDS = frozenset(
    "SEQ AND OR NOT ANY NEXT STRICT WITHIN EACH UNTIL GREEDY WHERE SELECT LIMIT EMIT RETURN INTO PATTERN _".split()
)
# Words that may begin an operand of a condition.
CONDITION_WORDS = frozenset("NOT NULL TRUE FALSE".split())

TERMINALS: Mapping[str, str] = {
    "OPERATOR": "SEQ(, AND( or OR(",
    "MODE": "ANY, NEXT or STRICT",
    "COMPARE": "a comparison (=, !=, <, <=, >, >=)",
    "NUMBER": "a number",
    "INT": "a number",
    "UNIT": "a unit of time (us, ms, s, min, h, d, w)",
    "STRING": "a text in single quotes",
    "QUOTED": "a name",
    "NAME": "a name",
    "STREAM": "the name of a stream",
    "UNDERSCORE": "'_'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "STAR": "'*'",
    "SLASH": "'/'",
    "QMARK": "'?'",
    "VBAR": "'|'",
    "$END": "the end of the text",
}
HINTS: Mapping[str, str] = {
    '"': "write a text in single quotes, a name in back quotes",
    "&": "write AND",
    "&&": "write AND",
    "||": "write OR, or concat(a, b) for texts",
    "!": "write NOT; unequal is !=",
    "->": "events one after the other are SEQ(A a, B b)",
    "=>": "at least is >=",
    "=<": "at most is <=",
    "=~": "likeness of texts is LIKE, with % and _; for regular expressions write matches(text, expression)",
    "~": "for regular expressions write matches(text, expression)",
    "%": "the remainder is mod(x, y)",
    "REGEXP": "for regular expressions write matches(text, expression)",
    "RLIKE": "for regular expressions write matches(text, expression)",
    "<>": "unequal is !=",
    ";": "patterns and clauses need no separator",
    "/*": "a comment begins with --",
    "//": "a comment begins with --",
    "==": "equal is one =",
    "COUNT": "to require 21 events write Refunded{21} r",
    "GROUP": "to group, correlate: WHERE [country]",
}
OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("len", "strlen", "char_length"), "length"),
    **dict.fromkeys(("substring", "mid"), "substr"),
    **dict.fromkeys(("regexp_matches", "regexp_like", "regexp"), "matches"),
    **dict.fromkeys(("ifnull", "nvl", "isnull"), "coalesce"),
    **dict.fromkeys(("log", "loge"), "ln"),
    **dict.fromkeys(("dayofweek", "isodow"), "weekday"),
    **dict.fromkeys(("min_of", "minimum"), "least"),
    **dict.fromkeys(("max_of", "maximum"), "greatest"),
    "power": "pow",
    "ceiling": "ceil",
    "haversine": "distance",
    "iif": "if",
    "to_timestamp": "timestamp",
    "to_date": "date",
}
"""The names of functions that are called differently in other languages."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_plain(name: str) -> bool:
    """Check whether all characters of a name are allowed without quotes."""
    return _PLAIN.fullmatch(name) is not None


def is_writable(name: str) -> bool:
    """Check whether a name can be written in back quotes: it is not empty and has no back quotes itself."""
    return bool(name) and "`" not in name


def quoted(name: str, words: frozenset[str] = frozenset()) -> str:
    """Return a name as text. It is in back quotes, unless it is plain and not one of the keywords ``words``."""
    return name if is_plain(name) and name.upper() not in words else f"`{name}`"


def listed(words: list[str]) -> str:
    """Write alternatives as a list: ``a, b or c``."""
    if len(words) < 2:
        return "".join(words) or "something else"
    return f"{', '.join(words[:-1])} or {words[-1]}"
