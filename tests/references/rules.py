"""The templates as formulas of linear temporal logic on finite traces: the specification of the automata.

A proposition is true of an event that shows the name. ``X`` is the strong next (there is a next event, and it satisfies
the operand), ``N`` the weak one (if there is a next event, it satisfies the operand). Nothing here is fast; tests and
documents use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeAlias

Word: TypeAlias = Sequence[frozenset[str]]
Operand: TypeAlias = Callable[[int], bool]  # whether an operand holds from a place on

_SIGNS: Mapping[str, str] = {
    "false": "\N{UP TACK}",
    "not": "\N{NOT SIGN}",
    "and": "\N{LOGICAL AND}",
    "or": "\N{LOGICAL OR}",
    "implies": "\N{RIGHTWARDS ARROW}",
    "iff": "\N{LEFT RIGHT ARROW}",
}


@dataclass(frozen=True, slots=True)
class Shows:
    """The event shows ``name``; false after the last event."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Formula:
    """An operator of ``false not and or implies iff X N F G U W`` on its operands."""

    operator: str
    operands: tuple[Shows | Formula, ...] = ()

    def __str__(self) -> str:
        sign = _SIGNS.get(self.operator, self.operator)
        shown = [
            f"({one})" if isinstance(one, Formula) and len(one.operands) > 1 else str(one) for one in self.operands
        ]
        if len(shown) == 1:
            return f"{sign}{'' if shown[0].startswith('(') or self.operator == 'not' else ' '}{shown[0]}"
        return f" {sign} ".join(shown) if shown else sign


Expression: TypeAlias = Shows | Formula


def holds(formula: Expression, word: Word, place: int = 0) -> bool:
    """Whether the events of ``word`` from ``place`` on satisfy a formula; by definition, without any automaton."""
    if isinstance(formula, Shows):
        return place < len(word) and formula.name in word[place]
    if formula.operator not in _MEANINGS:
        raise ValueError(f"{formula.operator!r} is not an operator")
    operands = [partial(holds, operand, word) for operand in formula.operands]
    return _MEANINGS[formula.operator](operands, place, len(word))


def _until(operands: Sequence[Operand], place: int, end: int) -> bool:
    left, right = operands
    return any(right(at) and all(map(left, range(place, at))) for at in range(place, end))


_MEANINGS: Mapping[str, Callable[[Sequence[Operand], int, int], bool]] = {
    "false": lambda _, place, end: False,
    "not": lambda operands, place, end: not operands[0](place),
    "and": lambda operands, place, end: all(operand(place) for operand in operands),
    "or": lambda operands, place, end: any(operand(place) for operand in operands),
    "implies": lambda operands, place, end: not operands[0](place) or operands[1](place),
    "iff": lambda operands, place, end: operands[0](place) == operands[1](place),
    "X": lambda operands, place, end: place + 1 < end and operands[0](place + 1),
    "N": lambda operands, place, end: place + 1 >= end or operands[0](place + 1),
    "F": lambda operands, place, end: any(map(operands[0], range(place, end))),
    "G": lambda operands, place, end: all(map(operands[0], range(place, end))),
    "U": _until,
    "W": lambda operands, place, end: all(map(operands[0], range(place, end))) or _until(operands, place, end),
}


def formula_of(kind: str, names: Sequence[str], count: int | None = None) -> Expression:
    """The formula of a template of ``constraints.documents.vocabulary``."""
    if count is not None:
        return _COUNTED[kind](Shows(names[0]), count)
    return _FORMULAS[kind](*map(Shows, names))


def _of(operator: str, *operands: Expression) -> Formula:
    return Formula(operator, operands)


def _no(operand: Expression) -> Formula:
    return _of("not", operand)


def _all(*operands: Expression) -> Expression:
    return operands[0] if len(operands) == 1 else _of("and", *operands)


def _occurs(name: Expression) -> Formula:
    return _of("F", name)


def _often(name: Expression, count: int) -> Formula:
    return reduce(lambda rest, _: _occurs(_all(name, _of("X", rest))), range(count - 1), _occurs(name))


def _never_after(first: Expression, second: Expression) -> Formula:
    return _of("G", _of("implies", first, _of("N", _of("G", _no(second)))))


def _exclusive(*names: Expression) -> Formula:
    return _no(_all(*map(_occurs, names)))


def _implication(*names: Expression) -> Formula:
    return _of("implies", _all(*map(_occurs, names[:-1])), _occurs(names[-1]))


def _absent_until(first: Expression, second: Expression) -> Formula:
    return _of("U", _no(first), second)


def _absent_unless(first: Expression, second: Expression) -> Formula:
    return _of("W", _no(first), second)


def _response(a: Expression, b: Expression) -> Formula:
    return _of("G", _of("implies", a, _occurs(b)))


def _precedence(a: Expression, b: Expression) -> Formula:
    return _absent_unless(b, a)


def _alternate_response(a: Expression, b: Expression) -> Formula:
    return _of("G", _of("implies", a, _of("X", _absent_until(a, b))))


def _alternate_precedence(a: Expression, b: Expression) -> Formula:
    return _of("and", _absent_unless(b, a), _of("G", _of("implies", b, _of("N", _absent_unless(b, a)))))


def _chain_response(a: Expression, b: Expression) -> Formula:
    return _of("G", _of("implies", a, _of("X", b)))


def _chain_precedence(a: Expression, b: Expression) -> Formula:
    return _of("and", _no(b), _of("G", _of("implies", _of("X", b), a)))


def _choice(a: Expression, b: Expression) -> Formula:
    return _of("or", _occurs(a), _occurs(b))


_COUNTED: Mapping[str, Callable[[Expression, int], Expression]] = {
    "existence": _often,
    "absence": lambda a, count: _no(_often(a, count)),
    "exactly": lambda a, count: _of("and", _often(a, count), _no(_often(a, count + 1))),
}
_FORMULAS: Mapping[str, Callable[..., Expression]] = {
    "prior": lambda a, b: _never_after(b, a),
    "exclusive": _exclusive,
    "require": _implication,
    "implication": _implication,
    "not_together": _exclusive,
    "end": lambda a: _of("G", _of("implies", a, _of("N", Formula("false")))),
    "init": lambda a: a,
    "last": lambda a: _occurs(_all(a, _of("N", Formula("false")))),
    "responded existence": _implication,
    "co-existence": lambda a, b: _of("iff", _occurs(a), _occurs(b)),
    "not co-existence": _exclusive,
    "choice": _choice,
    "exclusive choice": lambda a, b: _of("and", _choice(a, b), _exclusive(a, b)),
    "response": _response,
    "precedence": _precedence,
    "succession": lambda a, b: _of("and", _response(a, b), _precedence(a, b)),
    "alternate response": _alternate_response,
    "alternate precedence": _alternate_precedence,
    "alternate succession": lambda a, b: _of("and", _alternate_response(a, b), _alternate_precedence(a, b)),
    "chain response": _chain_response,
    "chain precedence": _chain_precedence,
    "chain succession": lambda a, b: _of("and", _chain_response(a, b), _chain_precedence(a, b)),
    "not succession": _never_after,
    "not chain succession": lambda a, b: _of("G", _of("implies", a, _of("N", _no(b)))),
}
