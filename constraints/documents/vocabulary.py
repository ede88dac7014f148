"""The names under which constraints are uploaded, and their meanings.

A template consists of order and Horn constraints, or of a *rule* together with the order and Horn constraints that
follow from it, from which a monitor can conclude more than from the rule alone. Each template is defined by examples,
which run as tests and are the table of ``docs/constraints.md``; ``tests/references/rules.py`` gives the same meanings
as formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from constraints.model import Clause, End, Exclusive, Part, Prior, Require, Rule

Names: TypeAlias = Sequence[str]
Translation: TypeAlias = Callable[[Names, int], tuple[Part, ...]]

MAX_COUNT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of constraint that can be uploaded, with short traces that keep or break its ``form``.

    Attributes:
        translate: Function from event types or symbols, and the number, to parts of a constraint set.
        meaning: Meaning in words, for the names A, B and C.
        count: Whether a number precedes the event types; 1 if omitted.
    """

    name: str
    translate: Translation
    meaning: str
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    fewest: int = 2
    most: int | None = 2
    allows_same: bool = False
    count: Literal["", "optional", "required"] = ""
    allows_symbols: bool = True

    @property
    def form(self) -> str:
        """An example of its written form."""
        letters = "ABC"[: max(self.fewest, 3 if self.most is None and self.name != "end" else 0)]
        return f"{self.name}({', '.join([*(['2'] if self.count else []), *letters])})"


def _implication(names: Names, _count: int = 1) -> tuple[Part, ...]:
    *body, head = names
    return (Require(body[0], head),) if len(body) == 1 else (Clause(frozenset(body), head),)


def _not_together(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return (Exclusive(*names),) if len(names) == 2 else (Clause(frozenset(names), None),)


def _require_back(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return (Require(names[1], names[0]),)


def _both_ways(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return _implication(names) + _require_back(names)


def _prior(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return (Prior(*names),)


def _prior_back(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return (Prior(names[1], names[0]),)


def _always(names: Names, _count: int = 1) -> tuple[Part, ...]:
    return (Clause(frozenset(), names[0]),)


def _at_least(names: Names, count: int) -> tuple[Part, ...]:
    return _always(names) if count == 1 else (*_always(names), Rule("existence", tuple(names), count))


def _fewer_than(names: Names, count: int) -> tuple[Part, ...]:
    if count == 1:
        return (Clause(frozenset(names), None),)
    return (Prior(names[0], names[0]),) if count == 2 else (Rule("absence", tuple(names), count),)


def _exactly(names: Names, count: int) -> tuple[Part, ...]:
    exact: Part = Prior(names[0], names[0]) if count == 1 else Rule("exactly", tuple(names), count)
    return (*_always(names), exact)


def _rule(kind: str, *entailed: Translation) -> Translation:
    """A translation to the rule of a kind, after the order and Horn constraints that follow from it."""
    return lambda names, count: (*(part for one in entailed for part in one(names, count)), Rule(kind, tuple(names)))


TEMPLATES: tuple[Template, ...] = (
    Template(
        name="prior",
        allows_same=True,
        translate=_prior,
        meaning="no A comes after a B; with the same name twice: at most one",
        kept=("A A B", "B", "A C", "-"),
        broken=("B A", "A B C A"),
    ),
    Template(
        name="exclusive",
        translate=_not_together,
        meaning="not both A and B occur",
        kept=("A A", "B C", "-"),
        broken=("A B", "B C A"),
    ),
    Template(
        name="require",
        translate=_implication,
        meaning="if A occurs, B occurs, before or after it",
        kept=("A B", "B A", "B", "C"),
        broken=("A", "C A A"),
    ),
    Template(
        name="implication",
        most=None,
        translate=_implication,
        meaning="if all but the last occur, the last occurs",
        kept=("A", "B C", "B C A"),
        broken=("A B", "B A A"),
    ),
    Template(
        name="not_together",
        most=None,
        translate=_not_together,
        meaning="not all of them occur",
        kept=("A B", "C C A"),
        broken=("A B C", "C A A B"),
    ),
    Template(
        name="end",
        fewest=1,
        most=None,
        allows_symbols=False,
        translate=lambda names, _: tuple(End(name) for name in names),
        meaning="A is an end event: nothing comes after it; a trace may end without one",
        kept=("B A", "B", "A"),
        broken=("A B", "A A"),
    ),
    Template(
        name="existence",
        fewest=1,
        most=1,
        count="optional",
        translate=_at_least,
        meaning="A occurs at least 2 times",
        kept=("A A", "A B A A"),
        broken=("-", "A B"),
    ),
    Template(
        name="absence",
        fewest=1,
        most=1,
        count="optional",
        translate=_fewer_than,
        meaning="A occurs fewer than 2 times",
        kept=("-", "B A"),
        broken=("A A", "A B A"),
    ),
    Template(
        name="exactly",
        fewest=1,
        most=1,
        count="required",
        translate=_exactly,
        meaning="A occurs 2 times, no more and no less",
        kept=("A A", "A B A"),
        broken=("A", "A A A", "-"),
    ),
    Template(
        name="init",
        fewest=1,
        most=1,
        translate=_rule("init", _always),
        meaning="the first event is A",
        kept=("A", "A B A"),
        broken=("B A", "-"),
    ),
    Template(
        name="last",
        fewest=1,
        most=1,
        translate=_rule("last", _always),
        meaning="the last event is A; others may come before it",
        kept=("A", "A B A"),
        broken=("A B", "-"),
    ),
    Template(
        name="responded existence",
        translate=_implication,
        meaning="if A occurs, B occurs, before or after it",
        kept=("B A", "A B", "B"),
        broken=("A", "C A"),
    ),
    Template(
        name="co-existence",
        translate=_both_ways,
        meaning="both A and B occur, or neither",
        kept=("B A A", "A B", "C"),
        broken=("A", "B B"),
    ),
    Template(
        name="not co-existence",
        translate=_not_together,
        meaning="not both A and B occur",
        kept=("A A", "B", "-"),
        broken=("A B", "B C A"),
    ),
    Template(
        name="choice",
        translate=_rule("choice"),
        meaning="A or B occurs, or both",
        kept=("A", "C B", "B A"),
        broken=("-", "C"),
    ),
    Template(
        name="exclusive choice",
        translate=_rule("exclusive choice", _not_together),
        meaning="A or B occurs, not both",
        kept=("A A", "C B"),
        broken=("-", "C", "A B"),
    ),
    Template(
        name="response",
        translate=_rule("response", _implication),
        meaning="after every A some B comes",
        kept=("A A B", "B A B", "B", "-"),
        broken=("A", "B A", "A B A"),
    ),
    Template(
        name="precedence",
        translate=_rule("precedence", _require_back),
        meaning="before every B some A came",
        kept=("A B B", "A", "-"),
        broken=("B", "B A B"),
    ),
    Template(
        name="succession",
        translate=_rule("succession", _both_ways),
        meaning="response and precedence",
        kept=("A B", "A A C B B", "-"),
        broken=("A", "B A B", "A B A"),
    ),
    Template(
        name="alternate response",
        translate=_rule("alternate response", _implication),
        meaning="after every A some B comes before the next A",
        kept=("A B", "A C B A B", "B B A B B"),
        broken=("A", "A A B", "A B A"),
    ),
    Template(
        name="alternate precedence",
        translate=_rule("alternate precedence", _require_back),
        meaning="before every B some A came since the B before it",
        kept=("A B", "A A B A B", "A"),
        broken=("B", "A B B", "A B C B"),
    ),
    Template(
        name="alternate succession",
        translate=_rule("alternate succession", _both_ways),
        meaning="alternate response and alternate precedence",
        kept=("A B", "A C B A B", "-"),
        broken=("A", "A A B", "A B B"),
    ),
    Template(
        name="chain response",
        translate=_rule("chain response", _implication),
        meaning="the event after every A is a B",
        kept=("A B", "B A B C A B", "B"),
        broken=("A", "A C B", "A A B"),
    ),
    Template(
        name="chain precedence",
        translate=_rule("chain precedence", _require_back),
        meaning="the event before every B is an A",
        kept=("A B", "A A B C", "A C"),
        broken=("B", "A C B", "A B B"),
    ),
    Template(
        name="chain succession",
        translate=_rule("chain succession", _both_ways),
        meaning="chain response and chain precedence",
        kept=("A B", "C A B A B", "-"),
        broken=("A", "B", "A C B"),
    ),
    Template(
        name="not succession",
        allows_same=True,
        translate=_prior_back,
        meaning="no B comes after an A",
        kept=("B A", "A A", "B"),
        broken=("A B", "A C B"),
    ),
    Template(
        name="not chain succession",
        allows_same=True,
        translate=_rule("not chain succession"),
        meaning="the event after an A is not a B",
        kept=("A C B", "B A", "A A"),
        broken=("A B", "C A B A"),
    ),
)

_OTHER_NAMES: Mapping[str, tuple[str, int | None]] = {
    "absence2": ("absence", 2),
    "at most one": ("absence", 2),
    "at most once": ("absence", 2),
    "exactly one": ("exactly", 1),
    "exactly once": ("exactly", 1),
    "starts with": ("init", None),
    "ends with": ("last", None),
    "last event": ("last", None),
    "non co-existence": ("not co-existence", None),
    "non succession": ("not succession", None),
    "not responded existence": ("not co-existence", None),
    "not response": ("not succession", None),
    "not precedence": ("not succession", None),
    "not chain response": ("not chain succession", None),
    "not chain precedence": ("not chain succession", None),
}
_NUMBERED = re.compile(r"(existence|absence|exactly)(\d{1,4})")


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


_BY_KEY: Mapping[str, Template] = {_key(template.name): template for template in TEMPLATES}
_BY_OTHER_KEY = {_key(other): (_BY_KEY[_key(name)], count) for other, (name, count) in _OTHER_NAMES.items()}


def template_of(name: str) -> tuple[Template, int | None] | None:
    """The template of a name, with its number if the name contains one: ``at most one``, ``existence3``.

    Case, spaces, hyphens and underscores are ignored.
    """
    key = _key(name)
    if key in _BY_KEY:
        return _BY_KEY[key], None
    if key in _BY_OTHER_KEY:
        return _BY_OTHER_KEY[key]
    numbered = _NUMBERED.fullmatch(key)
    return None if numbered is None else (_BY_KEY[numbered[1]], int(numbered[2]))
