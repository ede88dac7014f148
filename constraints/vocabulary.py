"""The names under which constraints are uploaded, and what each stands for.

The DECLARE templates listed here are order or Horn constraints, entirely or in the part that is kept; the others are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from constraints.model import Clause, End, Exclusive, Part, Prior, Require

Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of constraint that can be uploaded.

    Attributes:
        name: As advice shows it.
        fewest: Least number of event types.
        most: Largest number of event types; None if any.
        translate: Event types to parts of a constraint set.
        allows_same: Whether an event type may stand twice.
        lost: Empty, or the part of its meaning that is not kept, with ``{0}`` and ``{1}`` for the event types.
    """

    name: str
    fewest: int
    most: int | None
    translate: Callable[[Names], tuple[Part, ...]]
    allows_same: bool = False
    lost: str = ""

    @property
    def form(self) -> str:
        """How it is written."""
        letters = ", ".join("ABC"[: max(self.fewest, 3 if self.most is None and self.name != "end" else 0)])
        return f"{self.name}({letters})"


def _implication(names: Names) -> tuple[Part, ...]:
    *body, head = names
    return (Require(body[0], head),) if len(body) == 1 else (Clause(frozenset(body), head),)


def _not_together(names: Names) -> tuple[Part, ...]:
    return (Exclusive(*names),) if len(names) == 2 else (Clause(frozenset(names), None),)


def _require_back(names: Names) -> tuple[Part, ...]:
    return (Require(names[1], names[0]),)


def _at_most_once(names: Names) -> tuple[Part, ...]:
    return (Prior(names[0], names[0]),)


def _always(names: Names) -> tuple[Part, ...]:
    return (Clause(frozenset(), names[0]),)


TEMPLATES: tuple[Template, ...] = (
    Template(name="prior", fewest=2, most=2, allows_same=True, translate=lambda names: (Prior(*names),)),
    Template(name="exclusive", fewest=2, most=2, translate=_not_together),
    Template(name="require", fewest=2, most=2, translate=_implication),
    Template(name="implication", fewest=2, most=None, translate=_implication),
    Template(name="not_together", fewest=2, most=None, translate=_not_together),
    Template(name="existence", fewest=1, most=1, translate=_always),
    Template(name="absence", fewest=1, most=1, translate=lambda names: (Clause(frozenset(names), None),)),
    Template(name="absence2", fewest=1, most=1, translate=_at_most_once),
    Template(name="exactly one", fewest=1, most=1, translate=lambda names: _always(names) + _at_most_once(names)),
    Template(name="responded existence", fewest=2, most=2, translate=_implication),
    Template(name="co-existence", fewest=2, most=2, translate=lambda names: _implication(names) + _require_back(names)),
    Template(name="not co-existence", fewest=2, most=2, translate=_not_together),
    Template(
        name="not succession", fewest=2, most=2, allows_same=True, translate=lambda names: (Prior(names[1], names[0]),)
    ),
    Template(
        name="precedence",
        fewest=2,
        most=2,
        translate=_require_back,
        lost="{0} comes before every {1}",
    ),
    Template(
        name="response",
        fewest=2,
        most=2,
        translate=_implication,
        lost="{1} follows every {0}",
    ),
    Template(name="end", fewest=1, most=None, translate=lambda names: tuple(End(name) for name in names)),
)

_OTHER_NAMES = {
    "at most one": "absence2",
    "at most once": "absence2",
    "exactly once": "exactly one",
    "non co-existence": "not co-existence",
    "non succession": "not succession",
}


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


_BY_KEY: Mapping[str, Template] = {_key(template.name): template for template in TEMPLATES} | {
    _key(other): template for other, name in _OTHER_NAMES.items() for template in TEMPLATES if template.name == name
}


def template_of(name: str) -> Template | None:
    """The template of that name; case, spaces, hyphens and underscores do not count."""
    return _BY_KEY.get(_key(name))
