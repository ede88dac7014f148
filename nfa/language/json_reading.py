"""Conversion of JSON documents to patterns. An invalid document is refused with the code ``json`` and the path.

A document of the right form is written as text and parsed again, so that both forms meet the same checks; their
refusals count lines and columns in this text, which becomes the pattern's ``text``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import cast

from nfa.errors import PatternRefused
from nfa.language.description import describe_expression, describe_pattern
from nfa.language.json_place import JsonPlace
from nfa.language.limits import MAX_BUSINESS_DAYS, MAX_DEPTH, MAX_DURATION_US, MAX_LIMIT
from nfa.language.parsing import parse_pattern
from nfa.language.references import FUNCTIONS
from nfa.language.scope import all_atoms_of, hidden_aliases
from nfa.syntax import (
    ANY_TYPE,
    NOWHERE,
    After,
    AfterRule,
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
    Mode,
    Negative,
    Node,
    Not,
    Pattern,
    Repeat,
    Selection,
    Sequence,
)

_MAX_LEVELS = 4 * MAX_DEPTH + 20  # a level of the pattern takes up to four of JSON
_MAX_BOUND = 10**9
_NODES = ("atom", "repeat", "seq", "and", "or")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/")
_OPERATORS = ("and", "or", "not", "in", "like", "is_null", "neg", "call", *_COMPARISONS, *_ARITHMETIC)
_RULES = ("none", "once_per_key", "skip_to_next", "skip_past_last", "skip_to_first", "skip_to_last")
_SELECTIONS = ("all", "next", "strict")
_MODES = ("any", "next", "strict")
_FIELDS = "keys where within_us within_business select after limit timeouts return into rows"


def pattern_from_json(document: object) -> Pattern:
    """The pattern of a document, as ``json.loads`` returns it."""
    _check_levels(document)
    pattern = _Reader().pattern(JsonPlace(document))
    text = describe_pattern(pattern)
    read = parse_pattern(text)
    if read != pattern:
        JsonPlace(document).refuse(
            f"the document has no text form that reads back the same; its nearest text is {text}"
        )
    return read


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
    """Reads one document and collects its references, which are checked once all aliases are known."""

    def __init__(self) -> None:
        self._references: list[tuple[JsonPlace, Attribute, str | None]] = []

    def pattern(self, place: JsonPlace) -> Pattern:
        fields = place.fields("name event", _FIELDS)
        rows = _rows(fields["rows"]) if "rows" in fields else None
        event = self._node(fields["event"])
        _check_top(event, fields["event"])
        pattern = Pattern(
            name=fields["name"].name(),
            event=event,
            keys=tuple(_path(path) for path in fields["keys"].entries()) if "keys" in fields else (),
            where=self._expression(fields["where"], None) if "where" in fields else None,
            within_us=_duration(fields.get("within_us")),
            within_business=_business(fields["within_business"]) if "within_business" in fields else None,
            select=cast(Selection, fields["select"].choice(_SELECTIONS)) if "select" in fields else "all",
            after=_after(fields["after"]) if "after" in fields else After(),
            limit=fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else None,
            timeouts=fields["timeouts"].flag() if "timeouts" in fields else False,
            returns=tuple(map(self._column, fields["return"].entries())) if "return" in fields else (),
            into=_into(fields["into"]) if "into" in fields else None,
            rows=rows,
        )
        self._check_references(event, None if rows is None else rows.alias)
        return pattern

    def _column(self, place: JsonPlace) -> Column:
        fields = place.fields("expr", "as")
        expression = self._expression(fields["expr"], None)
        default = describe_expression(expression)
        is_default = "as" not in fields or fields["as"].value == default
        return Column(expression, default if is_default else fields["as"].name())

    def _node(self, place: JsonPlace) -> Node:
        match _operator(place, _NODES):
            case "atom":
                return self._atom(place)
            case "repeat":
                return self._repeat(place)
            case "seq":
                fields = place.fields("op items", "within_us")
                return Sequence(tuple(map(self._item, fields["items"].entries())), _duration(fields.get("within_us")))
            case operator:
                fields = place.fields("op items", "within_us")
                parts = tuple(map(self._node, fields["items"].entries()))
                span = _duration(fields.get("within_us"))
                return Conjunction(parts, span) if operator == "and" else Disjunction(parts, span)

    def _atom(self, place: JsonPlace) -> Atom:
        _operator(place, ("atom",))
        fields = place.fields("op types", "alias if")
        types = tuple(entry.name() for entry in fields["types"].entries())
        if ANY_TYPE in types and len(types) > 1:
            fields["types"].refuse('"_" means any type; remove the other types')
        alias = fields["alias"].name() if "alias" in fields else "|".join(types)
        return Atom(types, alias, self._expression(fields["if"], alias) if "if" in fields else None)

    def _repeat(self, place: JsonPlace) -> Repeat:
        fields = place.fields("op of min max", "each until greedy")
        of = self._node(fields["of"])
        if isinstance(of, Repeat):
            fields["of"].refuse("a repetition of a repetition is written with a seq of one item between them")
        most = fields["max"]
        return Repeat(
            of=of,
            min=fields["min"].whole(0, _MAX_BOUND),
            max=None if most.value is None else most.whole(0, _MAX_BOUND),
            each=_gap(fields["each"]) if "each" in fields else None,
            until=self._atom(fields["until"]) if "until" in fields else None,
            greedy=fields["greedy"].flag() if "greedy" in fields else False,
        )

    def _item(self, place: JsonPlace) -> Item:
        fields = place.fields("", "of not gap")
        if ("of" in fields) == ("not" in fields):
            place.refuse("an item has either the field of or the field not")
        return Item(
            of=self._node(fields["of"]) if "of" in fields else None,
            negated=self._atom(fields["not"]) if "not" in fields else None,
            gap=_gap(fields["gap"]) if "gap" in fields else None,
        )

    def _expression(self, place: JsonPlace, own: str | None) -> Expression:
        if isinstance(place.value, dict) and "lit" in place.value:
            return _literal(place)
        if isinstance(place.value, dict) and "each" in place.value:
            return Each(_Reader()._expression(place.fields("each")["each"], ""))  # its names are of no step
        if isinstance(place.value, dict) and "attr" in place.value:
            return self._attribute(place, own)
        operator = _operator(place, _OPERATORS)
        if operator == "call":
            return self._call(place, own)
        arguments = place.fields("op args")["args"]
        if operator == "in":
            return self._in_list(arguments, own)
        if operator == "like":
            operand, pattern = _exactly(arguments, 2)
            return Like(self._expression(operand, own), _text(pattern))
        if operator in ("and", "or"):
            operands = tuple(self._expression(operand, own) for operand in arguments.entries(2))
            return Both(operands) if operator == "and" else Either(operands)
        if operator in _COMPARISONS or operator in _ARITHMETIC:
            left, right = (self._expression(operand, own) for operand in _exactly(arguments, 2))
            if operator in _COMPARISONS:
                return Comparison(cast(ComparisonOperator, operator), left, right)
            return Arithmetic(cast(ArithmeticOperator, operator), left, right)
        (only,) = _exactly(arguments, 1)
        one = self._expression(only, own)
        return Not(one) if operator == "not" else Negative(one) if operator == "neg" else IsNull(one)

    def _call(self, place: JsonPlace, own: str | None) -> Call:
        fields = place.fields("op name args")
        name = fields["name"].choice(FUNCTIONS)
        return Call(name, tuple(self._expression(argument, own) for argument in fields["args"].entries()))

    def _in_list(self, arguments: JsonPlace, own: str | None) -> InList:
        operand, *values = arguments.entries(2)
        return InList(self._expression(operand, own), tuple(map(_literal, values)))

    def _attribute(self, place: JsonPlace, own: str | None) -> Attribute:
        fields = place.fields("attr", "of")
        of = None if "of" not in fields or fields["of"].value is None else fields["of"].name()
        path = tuple(entry.name() for entry in fields["attr"].entries(0))
        if not path and of is None:
            place.refuse("an attribute without path and step means nothing; give attr or of")
        attribute = Attribute(path, of)
        self._references.append((place, attribute, own))
        return attribute

    def _check_references(self, event: Node, row: str | None) -> None:
        """Refuse references that the text form reads differently: an alias hides an attribute of its name."""
        positive = {atom.alias for atom, is_positive in all_atoms_of(event) if is_positive} | ({row} if row else set())
        hidden = hidden_aliases(event)
        for place, attribute, own in self._references:
            known = positive if own is None else positive | {own}
            if attribute.of is not None:
                if attribute.of not in known:
                    place.refuse(f"{attribute.of!r} is not an alias that is known here; 'of' names a step")
            elif own is None:
                place.refuse("the field of is missing: where and return read attributes of a named step")
            elif attribute.path[0] in known or (len(attribute.path) > 1 and attribute.path[0] in hidden):
                place.refuse(
                    f"the alias {attribute.path[0]!r} hides the attribute of that name; give the step's own alias "
                    f"{own!r} as the field of"
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
    fields = place.fields("", "mode within_us")
    if not fields:
        place.refuse("a gap has a mode, within_us or both; leave an empty one out")
    mode = cast(Mode, fields["mode"].choice(_MODES)) if "mode" in fields else None
    return Gap(mode, _duration(fields.get("within_us")))


def _after(place: JsonPlace) -> After:
    fields = place.fields("rule", "alias")
    rule = cast(AfterRule, fields["rule"].choice(_RULES))
    if (rule in ("skip_to_first", "skip_to_last")) != ("alias" in fields):
        place.refuse("the rules skip_to_first and skip_to_last have an alias, the others none")
    return After(rule, fields["alias"].name() if "alias" in fields else None)


def _rows(place: JsonPlace) -> EachRow:
    fields = place.fields("table alias")
    return EachRow(table=fields["table"].name(), alias=fields["alias"].name())


def _into(place: JsonPlace) -> Into:
    fields = place.fields("stream", "key type")
    return Into(
        stream=fields["stream"].name(),
        key=fields["key"].name() if "key" in fields else None,
        event_type=fields["type"].name() if "type" in fields else None,
    )


def _duration(place: JsonPlace | None) -> int | None:
    return None if place is None else place.whole(1, MAX_DURATION_US)


def _business(place: JsonPlace) -> BusinessTime:
    fields = place.fields("calendar", "days us")
    if ("days" in fields) == ("us" in fields):
        place.refuse("business time has days, or us, and not both")
    days = fields["days"].whole(1, MAX_BUSINESS_DAYS) if "days" in fields else None
    return BusinessTime(calendar=fields["calendar"].name(), days=days, us=_duration(fields.get("us")))


def _path(place: JsonPlace) -> tuple[str, ...]:
    return tuple(entry.name() for entry in place.entries())
