"""The templates under which constraints are uploaded, and their translation.

A template is translated to order and Horn constraints. If these cannot express it, it is translated to a *rule*, and to
the order and Horn constraints that follow from the rule, because a monitor can conclude more from them than from the
rule alone. The table of ``docs/constraints.md`` defines each template by examples, which run as tests.
``tests/references/rules.py`` has the same meanings as formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from constraints.model import Clause, End, Exclusive, Part, Prior, Require, Rule

Names: TypeAlias = Sequence[str]
Translation: TypeAlias = Callable[[Names, int], tuple[Part, ...]]

MAX_COUNT = 100


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of constraint that can be uploaded.

    Attributes:
        translate: Function that returns the parts of a constraint set for given names and an optional number.
        count: Whether a number precedes the names: never (empty), optionally (default 1) or always.
    """

    name: str
    translate: Translation
    _: KW_ONLY
    fewest: int = 2
    most: int | None = 2
    allows_same: bool = False
    count: Literal["", "optional", "required"] = ""
    allows_symbols: bool = True

    @property
    def form(self) -> str:
        """An example of a constraint, as written in a document, with this template."""
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
    """Return a translation to a rule of a kind, together with orders and clauses that follow from the rule.

    ``entailed`` are the translations to these orders and clauses, which precede the rule.
    """
    return lambda names, count: (
        *(part for translation in entailed for part in translation(names, count)),
        Rule(kind, tuple(names)),
    )


TEMPLATES: tuple[Template, ...] = (
    Template("prior", lambda names, _: (Prior(*names),), allows_same=True),
    Template("exclusive", _not_together),
    Template("require", _implication),
    Template("implication", _implication, most=None),
    Template("not_together", _not_together, most=None),
    Template("end", lambda names, _: tuple(End(name) for name in names), fewest=1, most=None, allows_symbols=False),
    Template("existence", _at_least, fewest=1, most=1, count="optional"),
    Template("absence", _fewer_than, fewest=1, most=1, count="optional"),
    Template("exactly", _exactly, fewest=1, most=1, count="required"),
    Template("init", _rule("init", _always), fewest=1, most=1),
    Template("last", _rule("last", _always), fewest=1, most=1),
    Template("responded existence", _implication),
    Template("co-existence", _both_ways),
    Template("not co-existence", _not_together),
    Template("choice", _rule("choice")),
    Template("exclusive choice", _rule("exclusive choice", _not_together)),
    Template("response", _rule("response", _implication)),
    Template("precedence", _rule("precedence", _require_back)),
    Template("succession", _rule("succession", _both_ways)),
    Template("alternate response", _rule("alternate response", _implication)),
    Template("alternate precedence", _rule("alternate precedence", _require_back)),
    Template("alternate succession", _rule("alternate succession", _both_ways)),
    Template("chain response", _rule("chain response", _implication)),
    Template("chain precedence", _rule("chain precedence", _require_back)),
    Template("chain succession", _rule("chain succession", _both_ways)),
    Template("not succession", lambda names, _: (Prior(names[1], names[0]),), allows_same=True),
    Template("not chain succession", _rule("not chain succession"), allows_same=True),
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
    """Find the template with a given name, and the number in the name, if any: ``at most one``, ``existence3``.

    Case, spaces, hyphens and underscores are ignored.
    """
    key = _key(name)
    if key in _BY_KEY:
        return _BY_KEY[key], None
    if key in _BY_OTHER_KEY:
        return _BY_OTHER_KEY[key]
    numbered = _NUMBERED.fullmatch(key)
    return None if numbered is None else (_BY_KEY[numbered[1]], int(numbered[2]))
