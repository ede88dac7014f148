"""What users register, as use cases without HTTP: streams, constraint sets, patterns, webhooks."""

from __future__ import annotations

import base64
import secrets
import uuid
from dataclasses import dataclass

from constraints import (
    ConstraintSet,
    FailingCondition,
    QueryCheck,
    check_query,
    check_set,
    failing_conditions,
    parse_constraints,
    to_document,
)
from nfa import (
    Pattern,
    Query,
    build_query,
    check_stream,
    describe_pattern,
    parse_pattern,
    pattern_from_json,
    warnings_of,
)
from service.errors import KeyMismatch, PatternTooLong, StreamMissing, UnknownConstraints
from service.runtime import Stores
from service.settings import Settings
from service.stores import RegisteredConstraints, RegisteredPattern, RegisteredWebhook
from service.webhooks import check_secret, check_target
from streams import Clock, StreamDeclaration

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternReport:
    """A pattern as it is registered.

    Attributes:
        pattern: The record.
        is_new: Whether this call changed anything.
        parsed: What its text says.
        warnings: What can never match, and what is probably not meant, in words.
    """

    pattern: RegisteredPattern
    is_new: bool
    parsed: Pattern
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintReport:
    """A constraint set as it is registered.

    Attributes:
        record: The record.
        is_new: Whether this call changed anything.
        constraint_set: What it says.
        warnings: What is legal and probably not meant, and the patterns that can no longer match, in words.
    """

    record: RegisteredConstraints
    is_new: bool
    constraint_set: ConstraintSet
    warnings: tuple[str, ...]


class Registration:
    """The use cases.

    Args:
        stores: Where things are registered.
        settings: Limits, and which webhook targets are allowed.
        clock: Tells when.
    """

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock

    def declare_stream(self, declaration: StreamDeclaration) -> bool:
        """Declare a stream; returns whether it is new.

        Raises:
            StreamExists: It is declared already, differently.
        """
        return self._stores.registry.declare_stream(declaration)

    def upload_constraints(self, stream: str | None, document: object) -> ConstraintReport:
        """Give a stream its constraint set; patterns that it makes impossible stay, with a warning.

        Args:
            stream: A declared stream; its end events join those of the document. None takes the one that the document
                names.
            document: JSON or YAML text, or the value that such a text decodes to.

        Raises:
            InvalidConstraints: The document cannot be read; every problem is listed, with its line in a text.
            StreamMissing: Nobody names the stream, or the document names another one.
            UnknownStream: The stream is not declared.
            ContradictoryConstraints: No trace at all keeps the set.
        """
        parsed = parse_constraints(document, max_constraints=self._settings.limits.max_constraints)
        declaration = self._stores.registry.stream(_one_stream(stream, parsed.stream))
        constraint_set = _with_end_events(parsed.constraint_set, declaration)
        check_set(constraint_set)
        notices = (*parsed.notices, *_mismatches(parsed.constraint_set, declaration))
        record, is_new = self._stores.registry.put_constraints(
            declaration.name, to_document(constraint_set), notices, self._clock.now_us()
        )
        return self._constraint_report(record, constraint_set, is_new=is_new)

    def constraints(self, stream: str) -> ConstraintReport:
        """The current constraint set of a stream.

        Raises:
            UnknownStream: The stream is not declared.
            UnknownConstraints: It has no constraint set.
        """
        self._stores.registry.stream(stream)
        record = self._stores.registry.constraints(stream)
        return self._constraint_report(record, parse_constraints(record.document).constraint_set, is_new=False)

    def register_pattern(self, stream: str, text: str) -> PatternReport:
        """Register a pattern on a stream; another text under the same name is its next version.

        Raises:
            PatternTooLong: The text is longer than the limit.
            UnknownStream: The stream is not declared.
            PatternRefused: The text cannot be read, or waits for an end of trace that the stream does not have; the
                message names line, column and what is expected.
            KeyMismatch: ``WHERE [..]`` does not contain the stream's key.
            UnsatisfiablePattern: No trace that keeps the stream's constraints can match it.
            PatternOnOtherStream: The name is taken on another stream.
        """
        self._check_length(text)
        declaration = self._stores.registry.stream(stream)
        return self._register(parse_pattern(text), text, declaration)

    def register_definition(self, stream: str, definition: object) -> PatternReport:
        """Register a pattern that is given in its JSON form; its text is made from it.

        Raises:
            PatternRefused: Also where the document does not have the form; the message names the place in it.
            ForestallError: As ``register_pattern``.
        """
        declaration = self._stores.registry.stream(stream)
        pattern = pattern_from_json(definition)
        text = pattern.text or describe_pattern(pattern)
        self._check_length(text)
        return self._register(pattern, text, declaration)

    def pattern(self, name: str) -> tuple[PatternReport, tuple[FailingCondition, ...]]:
        """A registered pattern, and the events that end its partial matches under the stream's constraints.

        Raises:
            UnknownPatternName: There is none of that name.
        """
        record = self._stores.registry.pattern(name)
        declaration = self._stores.registry.stream(record.stream)
        pattern = parse_pattern(record.text)
        query = build_query(pattern)
        constraint_set = self._constraint_set(declaration)
        check = check_query(query, constraint_set)
        warnings = _warnings(pattern, query, check, declaration)
        report = PatternReport(pattern=record, is_new=False, parsed=pattern, warnings=warnings)
        return report, () if _finer_keys(pattern, declaration) else failing_conditions(query, constraint_set)

    def delete_pattern(self, name: str) -> None:
        """Delete a pattern; its alerts stay.

        Raises:
            UnknownPatternName: There is none of that name.
        """
        self._stores.registry.remove_pattern(name)

    def register_webhook(
        self, url: str, *, secret: str | None = None, stream: str | None = None, pattern: str | None = None
    ) -> RegisteredWebhook:
        """Send alerts that are found from now on to an address.

        Args:
            url: ``http`` or ``https``.
            secret: ``whsec_`` and base64 of 24 to 64 bytes; one is made when it is not given.
            stream: Only alerts of this stream.
            pattern: Only alerts of this pattern.

        Raises:
            UnknownStream: The stream is not declared.
            UnknownPatternName: There is no such pattern.
            WebhookRefused: The address or the secret cannot be used.
        """
        if stream is not None:
            self._stores.registry.stream(stream)
        if pattern is not None:
            self._stores.registry.pattern(pattern)
        check_target(url, allow_private=self._settings.webhooks.allow_private_targets)
        if secret is not None:
            check_secret(secret)
        webhook = RegisteredWebhook(
            id=f"wh_{uuid.uuid4().hex}",
            url=url,
            secret=secret or "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode(),
            stream=stream,
            pattern=pattern,
            is_enabled=True,
            registered_us=self._clock.now_us(),
        )
        self._stores.webhooks.put(webhook)
        return webhook

    def _check_length(self, text: str) -> None:
        limit = self._settings.limits.max_pattern_chars
        if len(text) > limit:
            raise PatternTooLong(f"the pattern has {len(text)} characters; at most {limit} are read", limit=limit)

    def _register(self, pattern: Pattern, text: str, declaration: StreamDeclaration) -> PatternReport:
        _check_key(pattern, declaration)
        check_stream(pattern, has_trace_end=_has_trace_end(declaration))
        query = build_query(pattern)
        check = check_query(query, self._constraint_set(declaration))
        check.require_satisfiable()
        record, is_new = self._stores.registry.put_pattern(declaration.name, pattern.name, text, self._clock.now_us())
        warnings = _warnings(pattern, query, check, declaration)
        return PatternReport(pattern=record, is_new=is_new, parsed=pattern, warnings=warnings)

    def _constraint_set(self, declaration: StreamDeclaration) -> ConstraintSet:
        try:
            record = self._stores.registry.constraints(declaration.name)
        except UnknownConstraints:
            return ConstraintSet(end_events=frozenset(declaration.end_events))
        return parse_constraints(record.document).constraint_set

    def _constraint_report(
        self, record: RegisteredConstraints, constraint_set: ConstraintSet, *, is_new: bool
    ) -> ConstraintReport:
        warnings = [warning.text for warning in check_set(constraint_set)]
        for pattern in self._stores.registry.patterns(record.stream):
            check = check_query(build_query(parse_pattern(pattern.text)), constraint_set)
            if not check.is_satisfiable:
                reasons = "; ".join(dict.fromkeys(term.text for term in check.dead))
                warnings.append(f"the pattern {pattern.name} stays registered and can no longer match: {reasons}")
        return ConstraintReport(record=record, is_new=is_new, constraint_set=constraint_set, warnings=tuple(warnings))


def _one_stream(asked: str | None, named: str | None) -> str:
    """The stream that a document is for, by the call or by itself."""
    if asked is not None and named not in (None, asked):
        raise StreamMissing(f"the document is for the stream {named!r}, the query says {asked!r}; name one")
    stream = named if asked is None else asked
    if stream is None:
        raise StreamMissing("name the stream that the document is for: 'stream: NAME' in it, or ?stream=NAME")
    return stream


def _with_end_events(constraint_set: ConstraintSet, declaration: StreamDeclaration) -> ConstraintSet:
    return ConstraintSet(constraint_set.constraints, constraint_set.end_events | frozenset(declaration.end_events))


def _mismatches(constraint_set: ConstraintSet, declaration: StreamDeclaration) -> list[str]:
    found = []
    if strangers := sorted(constraint_set.end_events - set(declaration.end_events)):
        found.append(
            f"{', '.join(strangers)}: end events of this document that the stream does not declare as such; nothing "
            "is expected after them, but its traces stay open"
        )
    if declaration.event_types and (strangers := sorted(constraint_set.types - set(declaration.event_types))):
        found.append(f"{', '.join(strangers)}: not among the event types that the stream declares")
    return found


def _has_trace_end(declaration: StreamDeclaration) -> bool:
    """Whether traces of the stream end; end events of constraints that the stream does not declare leave them open."""
    return bool(declaration.end_events)


def _finer_keys(pattern: Pattern, declaration: StreamDeclaration) -> list[str]:
    """The keys of a pattern that are not the stream's own."""
    own = {("key",), *declaration.key_paths}
    return [".".join(path) for path in pattern.keys if path not in own]


def _check_key(pattern: Pattern, declaration: StreamDeclaration) -> None:
    """Events are routed by the stream's key alone, so a pattern may look at finer traces and not at others."""
    finer = _finer_keys(pattern, declaration)
    if finer and len(finer) == len(pattern.keys):
        asked = ", ".join(finer)
        own = declaration.key.removeprefix("data.")
        raise KeyMismatch(
            f"WHERE [{asked}]: the stream {declaration.name!r} is correlated by {declaration.key}, and a pattern's "
            f"keys must contain that; write [key, {asked}] for finer traces, [{own}] or [key] for those of the "
            "stream, or leave it out",
            asked=asked,
            key=declaration.key,
        )


def _warnings(pattern: Pattern, query: Query, check: QueryCheck, declaration: StreamDeclaration) -> tuple[str, ...]:
    notices = warnings_of(pattern, has_trace_end=_has_trace_end(declaration))
    finer = ", ".join(_finer_keys(pattern, declaration))
    return (
        *_dead_alternatives(check),
        *_undeclared_types(query, declaration),
        *(f"line {one.position.line}, column {one.position.column}: {one.message}" for one in notices),
        *([f"traces are finer by {finer}, so constraints do not end its partial matches early"] if finer else []),
    )


def _dead_alternatives(check: QueryCheck) -> list[str]:
    return [f"one alternative of the pattern can never match: {term.text}" for term in check.dead]


def _undeclared_types(query: Query, declaration: StreamDeclaration) -> list[str]:
    if not declaration.event_types:
        return []
    return [
        f"the event type {name} is not among those that the stream declares, so no such event can come"
        for name in sorted(query.types - set(declaration.event_types))
    ]
