"""Converts JSON documents to patterns. An invalid document is refused with the code ``json`` and a path.

A document of valid form is converted to pattern text and then parsed, so JSON and text pass the same checks. If one of
these checks refuses, it reports line and column of the converted text. This text becomes the pattern's ``text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from nfa.errors import PatternRefused
from nfa.language.description import describe_expression, describe_pattern
from nfa.language.json_form import FORMS
from nfa.language.limits import MAX_BUSINESS_DAYS, MAX_DEPTH, MAX_DURATION_US, MAX_LIMIT
from nfa.language.parsing import parse_pattern
from nfa.language.references import FUNCTIONS
from nfa.language.scope import all_atoms_of, hidden_aliases
from nfa.language.words import is_writable, listed
from nfa.syntax import (
    ANY_TYPE,
    NOWHERE,
    After,
    Arithmetic,
    ArithmeticOperator,
    Atom,
    Attribute,
    Both,
    BusinessTime,
    Call,
    Column,
    Comparison,
    ComparisonOperator,
    Conjunction,
    Disjunction,
    Each,
    EachRow,
    Either,
    Expression,
    Gap,
    InList,
    Into,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Pattern,
    Repeat,
    Sequence,
)

_MAX_LEVELS = 4 * MAX_DEPTH + 20  # levels of JSON; one level of a pattern needs up to four
_MAX_BOUND = 10**9
_NODES = ("atom", "repeat", "seq", "and", "or")
_GROUPS: Mapping[str, type[Sequence | Conjunction | Disjunction]] = {
    "seq": Sequence,
    "and": Conjunction,
    "or": Disjunction,
}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/")
_OPERATORS = ("and", "or", "not", "in", "like", "is_null", "neg", "call", *_COMPARISONS, *_ARITHMETIC)

_Part = TypeVar("_Part")
_MemberReader: TypeAlias = "Callable[[JsonPlace], Any]"


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """A value in a JSON document, with its path for error messages."""

    value: object
    path: str = ""

    def refuse(self, message: str) -> NoReturn:
        """Raise ``PatternRefused`` with the code ``json``, the path of the value and ``message``."""
        raise PatternRefused("json", f"at {self.path or '/'}: {message}", NOWHERE)

    def expect(self, expected: str) -> NoReturn:
        self.refuse(f"expected {expected}, found {_described(self.value)}")

    def fields(self, required: str, optional: str = "") -> dict[str, JsonPlace]:
        """Return the fields of an object by name. A value that is no object is refused.

        ``required`` and ``optional`` are names separated by spaces. Missing required fields and unknown fields are
        refused.
        """
        if not isinstance(self.value, dict):
            self.expect("an object")
        names = [*required.split(), *optional.split()]
        for name in self.value:
            if name not in names:
                self.refuse(f"the field {_described(name)} is not known; there are {', '.join(names)}")
        for name in required.split():
            if name not in self.value:
                self.refuse(f"the field {name} is missing")
        return {name: self.at(name) for name in self.value}

    def at(self, name: str) -> JsonPlace:
        """Return the value of an object's field, which must be present."""
        return JsonPlace(cast("dict[str, object]", self.value)[name], f"{self.path}/{name}")

    def entries(self, least: int = 1) -> list[JsonPlace]:
        if not isinstance(self.value, list):
            self.expect("a list")
        if len(self.value) < least:
            self.expect(f"a list of at least {least}")
        return [JsonPlace(value, f"{self.path}/{number}") for number, value in enumerate(self.value)]

    def name(self) -> str:
        """Return the value if it is a name that can be written in back quotes. Other values are refused."""
        if not isinstance(self.value, str) or not is_writable(self.value):
            self.expect("a name: a text that is not empty and holds no back quote")
        return self.value

    def whole(self, least: int, most: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value <= most:
            self.expect(f"a whole number from {least} to {most}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.expect("true or false")
        return self.value

    def choice(self, words: tuple[str, ...]) -> str:
        if not isinstance(self.value, str) or self.value not in words:
            self.expect(listed(list(words)))
        return self.value


def pattern_from_json(document: object) -> Pattern:
    """Build the pattern of a document, as ``json.loads`` returns it."""
    _check_levels(document)
    pattern = _Reader().pattern(JsonPlace(document))
    text = describe_pattern(pattern)
    parsed = parse_pattern(text)
    if parsed != pattern:
        JsonPlace(document).refuse(
            f"the document has no text form that reads back the same; its nearest text is {text}"
        )
    return parsed


def _check_levels(document: object) -> None:
    level, values = 0, [document]
    while values:
        level += 1
        if level > _MAX_LEVELS:
            raise PatternRefused("too-large", f"the document nests deeper than {_MAX_LEVELS} levels", NOWHERE)
        values = [inner for value in values for inner in _inner(value)]


def _inner(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


class _Reader:
    """Reads the parts of a pattern. References are collected first, and checked when all aliases are known."""

    def __init__(self) -> None:
        self._references: list[tuple[JsonPlace, Attribute, str | None]] = []
        self._readers: Mapping[str, _MemberReader] = {
            **_READERS,
            **dict.fromkeys(("event", "of"), self._node),
            **dict.fromkeys(("until", "not"), self._atom),
            "where": lambda place: self._expression(place, None),
            "return": lambda place: tuple(map(self._column, place.entries())),
        }

    def pattern(self, place: JsonPlace) -> Pattern:
        pattern = _read_part(Pattern, place, self._readers)
        _check_top(pattern.event, place.at("event"))
        self._check_references(pattern.event, None if pattern.rows is None else pattern.rows.alias)
        return pattern

    def _column(self, place: JsonPlace) -> Column:
        fields = place.fields("expr", "as")
        expression = self._expression(fields["expr"], None)
        default = describe_expression(expression)
        is_default = "as" not in fields or fields["as"].value == default
        return Column(expression, default if is_default else fields["as"].name())

    def _node(self, place: JsonPlace) -> Node:
        operator = _operator(place, _NODES)
        if operator == "atom":
            return self._atom(place)
        if operator == "repeat":
            return self._repeat(place)
        reader = self._item if operator == "seq" else self._node
        items: _MemberReader = lambda items: tuple(map(reader, items.entries()))  # noqa: E731 - a reader beside the others
        return _read_part(_GROUPS[operator], place, {**self._readers, "items": items})

    def _atom(self, place: JsonPlace) -> Atom:
        _operator(place, ("atom",))
        fields = place.fields("op types", "alias if")
        types = tuple(entry.name() for entry in fields["types"].entries())
        if ANY_TYPE in types and len(types) > 1:
            fields["types"].refuse('"_" means any type; remove the other types')
        alias = fields["alias"].name() if "alias" in fields else "|".join(types)
        return Atom(types, alias, self._expression(fields["if"], alias) if "if" in fields else None)

    def _repeat(self, place: JsonPlace) -> Repeat:
        repeat = _read_part(Repeat, place, self._readers)
        if isinstance(repeat.of, Repeat):
            place.at("of").refuse("a repetition of a repetition is written with a seq of one item between them")
        return repeat

    def _item(self, place: JsonPlace) -> Item:
        item = _read_part(Item, place, self._readers)
        if (item.of is None) == (item.negated is None):
            place.refuse("an item has either the field of or the field not")
        return item

    def _expression(self, place: JsonPlace, own_alias: str | None) -> Expression:
        if isinstance(place.value, dict) and "lit" in place.value:
            return _literal(place)
        if isinstance(place.value, dict) and "each" in place.value:
            return Each(_Reader()._expression(place.fields("each")["each"], ""))  # names are of list elements
        if isinstance(place.value, dict) and "attr" in place.value:
            return self._attribute(place, own_alias)
        operator = _operator(place, _OPERATORS)
        if operator == "call":
            return self._call(place, own_alias)
        arguments = place.fields("op args")["args"]
        if operator == "in":
            return self._in_list(arguments, own_alias)
        if operator == "like":
            operand, pattern = _exactly(arguments, 2)
            return Like(self._expression(operand, own_alias), _text(pattern))
        if operator in ("and", "or"):
            operands = tuple(self._expression(operand, own_alias) for operand in arguments.entries(2))
            return Both(operands) if operator == "and" else Either(operands)
        if operator in _COMPARISONS or operator in _ARITHMETIC:
            left, right = (self._expression(operand, own_alias) for operand in _exactly(arguments, 2))
            if operator in _COMPARISONS:
                return Comparison(cast(ComparisonOperator, operator), left, right)
            return Arithmetic(cast(ArithmeticOperator, operator), left, right)
        (only,) = _exactly(arguments, 1)
        argument = self._expression(only, own_alias)
        return Not(argument) if operator == "not" else Negative(argument) if operator == "neg" else IsNull(argument)

    def _call(self, place: JsonPlace, own_alias: str | None) -> Call:
        fields = place.fields("op name args")
        name = fields["name"].choice(FUNCTIONS)
        return Call(name, tuple(self._expression(argument, own_alias) for argument in fields["args"].entries()))

    def _in_list(self, arguments: JsonPlace, own_alias: str | None) -> InList:
        operand, *values = arguments.entries(2)
        return InList(self._expression(operand, own_alias), tuple(map(_literal, values)))

    def _attribute(self, place: JsonPlace, own_alias: str | None) -> Attribute:
        fields = place.fields("attr", "of")
        alias = None if "of" not in fields or fields["of"].value is None else fields["of"].name()
        path = tuple(entry.name() for entry in fields["attr"].entries(0))
        if not path and alias is None:
            place.refuse("an attribute without path and step means nothing; give attr or of")
        attribute = Attribute(path, alias)
        self._references.append((place, attribute, own_alias))
        return attribute

    def _check_references(self, event: Node, row: str | None) -> None:
        positive = {atom.alias for atom, is_positive in all_atoms_of(event) if is_positive} | ({row} if row else set())
        hidden = hidden_aliases(event)
        for place, attribute, own_alias in self._references:
            known_aliases = positive if own_alias is None else positive | {own_alias}
            if attribute.of is not None:
                if attribute.of not in known_aliases:
                    place.refuse(f"{attribute.of!r} is not an alias that is known here; 'of' names a step")
            elif own_alias is None:
                place.refuse("the field of is missing: where and return read attributes of a named step")
            elif attribute.path[0] in known_aliases or (len(attribute.path) > 1 and attribute.path[0] in hidden):
                place.refuse(
                    f"the alias {attribute.path[0]!r} hides the attribute of that name; give the step's own alias "
                    f"{own_alias!r} as the field of"
                )


def _check_top(event: Node, place: JsonPlace) -> None:
    part = event.of if isinstance(event, Repeat) else event
    if isinstance(part, Atom | Repeat) or part.within_us is None:
        return
    if part is event:
        place.refuse("the span of the whole match is the pattern's own field within_us")
    place.refuse("a span of each iteration of the whole event is written with a seq of one item around the repeat")


def _operator(place: JsonPlace, operators: tuple[str, ...]) -> str:
    if not isinstance(place.value, dict):
        place.expect("an object")
    if "op" not in place.value:
        place.refuse(f"the field op is missing; it is one of {', '.join(operators)}")
    return JsonPlace(place.value["op"], f"{place.path}/op").choice(operators)


def _exactly(place: JsonPlace, number: int) -> list[JsonPlace]:
    entries = place.entries(number)
    if len(entries) != number:
        place.expect(f"a list of {number}")
    return entries


def _literal(place: JsonPlace) -> Literal:
    value = place.fields("lit")["lit"].value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        if value.bit_length() > 1_023:
            place.refuse("the number is larger than a float64 can hold")
        value = float(value)
    if isinstance(value, float) and not isfinite(value):
        place.refuse("a constant is a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return Literal(value)
    return place.expect("a text, a number, true, false or null")


def _text(place: JsonPlace) -> str:
    literal = _literal(place)
    if not isinstance(literal.value, str):
        place.expect("a constant text")
    return literal.value


def _gap(place: JsonPlace) -> Gap:
    gap = _read_part(Gap, place)
    if gap == Gap():
        place.refuse("a gap has a mode, within_us or both; leave an empty one out")
    return gap


def _after(place: JsonPlace) -> After:
    place.fields("rule", "alias")
    after = _read_part(After, place)
    if (after.rule in ("skip_to_first", "skip_to_last")) != (after.alias is not None):
        place.refuse("the rules skip_to_first and skip_to_last have an alias, the others none")
    return after


def _business(place: JsonPlace) -> BusinessTime:
    time = _read_part(BusinessTime, place)
    if (time.days is None) == (time.us is None):
        place.refuse("business time has days, or us, and not both")
    return time


def _names(place: JsonPlace) -> tuple[str, ...]:
    return tuple(entry.name() for entry in place.entries())


def _whole(least: int, most: int) -> _MemberReader:
    return lambda place: place.whole(least, most)


def _choice(*words: str) -> _MemberReader:
    return lambda place: place.choice(words)


_READERS: Mapping[str, _MemberReader] = {
    **dict.fromkeys(("name", "alias", "stream", "key", "type", "table", "calendar"), JsonPlace.name),
    **dict.fromkeys(("timeouts", "greedy"), JsonPlace.flag),
    **dict.fromkeys(("within_us", "us"), _whole(1, MAX_DURATION_US)),
    **dict.fromkeys(("each", "gap"), _gap),
    "min": _whole(0, _MAX_BOUND),
    "max": lambda place: None if place.value is None else place.whole(0, _MAX_BOUND),
    "limit": _whole(1, MAX_LIMIT),
    "days": _whole(1, MAX_BUSINESS_DAYS),
    "mode": _choice("any", "next", "strict"),
    "select": _choice("all", "next", "strict"),
    "rule": _choice("none", "once_per_key", "skip_to_next", "skip_past_last", "skip_to_first", "skip_to_last"),
    "keys": lambda place: tuple(map(_names, place.entries())),
    "after": _after,
    "within_business": _business,
    "into": lambda place: _read_part(Into, place),
    "rows": lambda place: _read_part(EachRow, place),
}
"""The readers of members by name; readers of nodes and expressions are in ``_Reader``."""


def _read_part(kind: type[_Part], place: JsonPlace, readers: Mapping[str, _MemberReader] = _READERS) -> _Part:
    form = FORMS[kind]
    required = [member for field, member in form.members.items() if field not in form.defaults]
    optional = [member for field, member in form.members.items() if field in form.defaults]
    place.fields(" ".join([*(["op"] if form.op else []), *required]), " ".join(optional))
    document = cast("dict[str, object]", place.value)
    members = {field: member for field, member in form.members.items() if member in document}
    return kind(**{field: readers[member](place.at(member)) for field, member in members.items()})


def _described(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
