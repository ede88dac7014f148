"""What is registered: streams, patterns and constraint sets, each with its versions.

Every change is one atomic script that writes the registry and appends the control record to every shard of the log, so
the two never disagree. A change is computed from the record that was read and lands only if that is still there;
otherwise it is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast

from service.errors import (
    PatternOnOtherStream,
    RecordFormatError,
    RegistryContended,
    StreamExists,
    UnknownConstraints,
    UnknownPatternName,
    UnknownStream,
)
from service.stores.connection import PREFIX, Client, register
from service.stores.event_log import EventLog
from service.stores.records import decode, encode
from streams import (
    KINDS,
    ConstraintsOn,
    ControlRecord,
    DeclarationError,
    PatternOff,
    PatternOn,
    StreamDeclaration,
    StreamOn,
    encode_control,
)

STREAMS_KEY = PREFIX + "streams"
PATTERNS_KEY = PREFIX + "patterns"
PATTERN_VERSIONS_KEY = PREFIX + "pattern-versions"
CONSTRAINTS_KEY = PREFIX + "constraints"
CONSTRAINT_VERSIONS_KEY = PREFIX + "constraint-versions"

FollowMode: TypeAlias = Literal["auto", "exact", "tables"]

_ATTEMPTS = 5

# KEYS: current records, all versions, then every shard. ARGV: field, the record it replaces or '', the new record,
# field among the versions, kind, stream and body of the control record.
_COMMIT = """
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[4], ARGV[3])
for i = 3, #KEYS do
  redis.call('XADD', KEYS[i], '*', 'kind', ARGV[5], 'stream', ARGV[6], 'body', ARGV[7])
end
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPattern:
    """A pattern on a stream.

    Attributes:
        is_active: False once it is deleted; its versions go on counting when it comes back.
        registered_us: When this version came, microseconds UTC.
        is_guarded: Whether the stream's constraints end its partial matches early.
    """

    name: str
    stream: str
    text: str
    version: int
    is_active: bool
    registered_us: int
    is_guarded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Which workflow a stream follows, and how.

    Attributes:
        workflow: Its name.
        version: The version that is followed.
        mode: As asked; ``auto`` takes the automaton if there is one, and else the constraints.
    """

    workflow: str
    version: int
    mode: FollowMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsDraft:
    """A constraint set that a stream is to have.

    Attributes:
        document: In canonical form: what was written by hand, what the followed workflow says, the stream's end events.
        notices: Where the upload means more than is kept, in words.
        own: What was written by hand, in canonical form.
        following: The workflow that the rest is from.
    """

    document: Mapping[str, Any]
    notices: tuple[str, ...]
    own: Mapping[str, Any] | None = None
    following: Following | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConstraints:
    """The constraint set of a stream.

    Attributes:
        document: In canonical form, the stream's end events and what a workflow says included; read by
            ``constraints.parse_constraints``.
        notices: Where the upload means more than is kept, in words.
        uploaded_us: When this version came, microseconds UTC.
        own: What was written by hand, in canonical form; None in records of earlier releases, where all of it was.
        following: The workflow that the rest is from, if the stream follows one.
    """

    stream: str
    version: int
    document: Mapping[str, Any]
    notices: tuple[str, ...]
    uploaded_us: int
    own: Mapping[str, Any] | None = None
    following: Following | None = None

    @property
    def written(self) -> Mapping[str, Any]:
        """What was written by hand, in canonical form."""
        return self.document if self.own is None else self.own

    def says(self, draft: ConstraintsDraft) -> bool:
        """Whether it is what a draft wants already."""
        same = self.document == draft.document and self.following == draft.following
        return same and self.own in (None, draft.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A new record and the control record that tells the pipeline."""

    record: bytes
    version: int
    stream: str
    control: ControlRecord


class Registry:
    """The registry, next to the log it writes control records into."""

    def __init__(self, client: Client, log: EventLog) -> None:
        self._client = client
        self._log = log
        self._commit = register(client, _COMMIT)

    # Streams

    def declare_stream(self, declaration: StreamDeclaration) -> bool:
        """Declare a stream; declaring it again in the same words changes nothing.

        Returns:
            Whether it is new.

        Raises:
            StreamExists: It is declared already, differently.
        """

        def change(current: bytes | None) -> _Change | None:
            if current is None:
                record = encode(declaration=declaration.to_json())
                return _Change(record=record, version=1, stream=declaration.name, control=StreamOn(declaration))
            if _declaration(current, declaration.name) != declaration:
                raise StreamExists(
                    f"the stream {declaration.name!r} is declared already, differently; declare another name, "
                    "or send the declaration that it has",
                    stream=declaration.name,
                )
            return None

        _, is_new = self._apply(STREAMS_KEY, STREAMS_KEY + ":versions", declaration.name, change)
        return is_new

    def stream(self, name: str) -> StreamDeclaration:
        """The declaration of a stream.

        Raises:
            UnknownStream: There is none.
        """
        body = self._get(STREAMS_KEY, name)
        if body is None:
            raise UnknownStream(f"there is no stream {name!r}; declare it first (POST /v1/streams)", stream=name)
        return _declaration(body, name)

    def streams(self) -> list[StreamDeclaration]:
        """All streams, by name."""
        return [_declaration(body, name) for name, body in self._all(STREAMS_KEY)]

    # Patterns

    def put_pattern(
        self, stream: str, name: str, text: str, now_us: int, *, is_guarded: bool = True
    ) -> tuple[RegisteredPattern, bool]:
        """Register a pattern; another text or guard is its next version, the same again changes nothing.

        Returns:
            The pattern as it is now, and whether it changed.

        Raises:
            PatternOnOtherStream: An active pattern of that name is on another stream.
        """

        def change(current: bytes | None) -> _Change | None:
            known = None if current is None else _pattern(current, name)
            if known is not None and known.is_active:
                if known.stream != stream:
                    raise PatternOnOtherStream(
                        f"the pattern {name!r} is registered on the stream {known.stream!r}; delete it there first, "
                        "or give this one another name",
                        pattern=name,
                        stream=known.stream,
                    )
                if (known.text, known.is_guarded) == (text, is_guarded):
                    return None
            version = 1 if known is None else known.version + 1
            pattern = RegisteredPattern(
                name=name,
                stream=stream,
                text=text,
                version=version,
                is_active=True,
                registered_us=now_us,
                is_guarded=is_guarded,
            )
            control = PatternOn(name=name, version=version, text=text, is_guarded=is_guarded)
            return _Change(record=encode(**asdict(pattern)), version=version, stream=stream, control=control)

        record, is_new = self._apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, name, change)
        return _pattern(record, name), is_new

    def remove_pattern(self, name: str) -> None:
        """Delete a pattern; its alerts stay.

        Raises:
            UnknownPatternName: There is none.
        """

        def change(current: bytes | None) -> _Change | None:
            known = None if current is None else _pattern(current, name)
            if known is None or not known.is_active:
                raise _unknown_pattern(name)
            gone = encode(**{**asdict(known), "is_active": False})
            return _Change(record=gone, version=known.version, stream=known.stream, control=PatternOff(name))

        self._apply(PATTERNS_KEY, PATTERN_VERSIONS_KEY, name, change)

    def pattern(self, name: str) -> RegisteredPattern:
        """An active pattern.

        Raises:
            UnknownPatternName: There is none.
        """
        body = self._get(PATTERNS_KEY, name)
        pattern = None if body is None else _pattern(body, name)
        if pattern is None or not pattern.is_active:
            raise _unknown_pattern(name)
        return pattern

    def patterns(self, stream: str | None = None) -> list[RegisteredPattern]:
        """All active patterns, by name."""
        everything = (_pattern(body, name) for name, body in self._all(PATTERNS_KEY))
        return [pattern for pattern in everything if pattern.is_active and stream in (None, pattern.stream)]

    # Constraint sets

    def change_constraints(
        self, stream: str, change: Callable[[RegisteredConstraints | None], ConstraintsDraft], now_us: int
    ) -> tuple[RegisteredConstraints, bool]:
        """Give a stream a constraint set that depends on the one it has; what it has already changes nothing.

        Args:
            stream: Its name.
            change: From the current set to the next; may be called again when another writer comes in between, and may
                raise.
            now_us: Microseconds UTC.

        Returns:
            The constraint set as it is now, and whether it changed.
        """

        def changed(current: bytes | None) -> _Change | None:
            known = None if current is None else _constraints(current, stream)
            draft = change(known)
            if known is not None and known.says(draft):
                return None
            version = 1 if known is None else known.version + 1
            record = encode(stream=stream, version=version, uploaded_us=now_us, **asdict(draft))
            control = ConstraintsOn(name=stream, version=version, document=draft.document)
            return _Change(record=record, version=version, stream=stream, control=control)

        record, is_new = self._apply(CONSTRAINTS_KEY, CONSTRAINT_VERSIONS_KEY, stream, changed)
        return _constraints(record, stream), is_new

    def put_constraints(
        self, stream: str, document: Mapping[str, Any], notices: tuple[str, ...], now_us: int
    ) -> tuple[RegisteredConstraints, bool]:
        """Give a stream a constraint set; another document is its next version, the same one changes nothing.

        Returns:
            The constraint set as it is now, and whether it changed.
        """
        draft = ConstraintsDraft(document=document, notices=notices)
        return self.change_constraints(stream, lambda _: draft, now_us)

    def constraints(self, stream: str) -> RegisteredConstraints:
        """The current constraint set of a stream.

        Raises:
            UnknownConstraints: There is none.
        """
        body = self._get(CONSTRAINTS_KEY, stream)
        if body is None:
            raise UnknownConstraints(
                f"the stream {stream!r} has no constraint set; upload one (POST /v1/constraints)", stream=stream
            )
        return _constraints(body, stream)

    def constraint_versions(self, stream: str) -> list[RegisteredConstraints]:
        """Every constraint set that a stream has had, the current one last.

        Raises:
            UnknownConstraints: There is none.
        """
        last = self.constraints(stream).version
        fields = [_version_field(stream, version) for version in range(1, last + 1)]
        bodies = cast("list[bytes | None]", self._client.hmget(CONSTRAINT_VERSIONS_KEY, fields))
        return [_constraints(body, stream) for body in bodies if body is not None]

    def constraint_sets(self) -> list[RegisteredConstraints]:
        """The current constraint set of every stream that has one, by name."""
        return [_constraints(body, name) for name, body in self._all(CONSTRAINTS_KEY)]

    # Storage

    def _apply(
        self, key: str, versions_key: str, field: str, change: Callable[[bytes | None], _Change | None]
    ) -> tuple[bytes, bool]:
        """Compute a change and commit it; again when another writer came first. None leaves the record as it is.

        A script whose reply was lost is sent again and finds its own record in place of the one it was to replace. So
        where the very version that was wanted is there, the change has landed.
        """
        for _ in range(_ATTEMPTS):
            current = self._get(key, field)
            wanted = change(current)
            if wanted is None:
                assert current is not None, "only an existing record can stay as it is"
                return current, False
            version_field = _version_field(field, wanted.version)
            arguments: list[str | bytes | int] = [field, current or b"", wanted.record, version_field]
            arguments += [KINDS[type(wanted.control)].value, wanted.stream, encode_control(wanted.control)]
            if self._commit([key, versions_key, *self._log.keys()], arguments):
                return wanted.record, True
            if self._client.hget(versions_key, version_field) == wanted.record:
                return wanted.record, True
        raise RegistryContended(f"{field!r} keeps being changed by others; try again")

    def _get(self, key: str, field: str) -> bytes | None:
        return cast("bytes | None", self._client.hget(key, field))

    def _all(self, key: str) -> list[tuple[str, bytes]]:
        records = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return sorted((field.decode(), body) for field, body in records.items())


def _version_field(name: str, version: int) -> str:
    return f"{version}@{name}"


def _declaration(body: bytes, name: str) -> StreamDeclaration:
    fields = decode(body, f"the stream {name!r}")
    try:
        return StreamDeclaration.from_json(fields.get("declaration"))
    except DeclarationError as error:
        raise RecordFormatError(f"the stored record of the stream {name!r} is damaged: {error}") from error


def _pattern(body: bytes, name: str) -> RegisteredPattern:
    return RegisteredPattern(**decode(body, f"the pattern {name!r}"))


def _constraints(body: bytes, stream: str) -> RegisteredConstraints:
    fields = decode(body, f"the constraint set of {stream!r}")
    following = fields.get("following")
    return RegisteredConstraints(
        **{
            **fields,
            "notices": tuple(fields["notices"]),
            "following": None if following is None else Following(**following),
        }
    )


def _unknown_pattern(name: str) -> UnknownPatternName:
    return UnknownPatternName(f"there is no pattern {name!r}; GET /v1/patterns lists them", pattern=name)
