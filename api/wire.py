"""Base classes and annotations of the wire models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import (
    CoreSchema,
    ErrorDetails,
    InitErrorDetails,
    PydanticCustomError,
    PydanticUndefined,
    core_schema,
)

from streams import EventRejected, did_you_mean, format_time, parse_time

Item = TypeVar("Item")

LONGEST_NAME = 200
"""Longest part of a client's name that a message repeats, in characters."""

MOST_FAULTS = 100
"""Greatest number of a request's faults that an answer lists."""

_OWN_MESSAGE = "own-message"


def _checked(text: str) -> str:
    try:
        parse_time(text)
    except EventRejected as error:
        raise ValueError(error.message) from error
    return text


_DATE_TIME = WithJsonSchema({"type": "string", "format": "date-time"})

Moment: TypeAlias = Annotated[str, AfterValidator(_checked), _DATE_TIME]
"""A time in a request, as RFC 3339 text."""

Time: TypeAlias = Annotated[str, _DATE_TIME]
"""A time in an answer, as RFC 3339 text."""

Text: TypeAlias = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""A text in an answer; an empty text becomes null."""

_CREATED = ("created_us", "registered_us", "uploaded_us")
_UNITS = {"_ms": 1_000, "_us": 1_000_000}
_MISSING: Final = object()
_JSON_TYPES = (Mapping, list, str, int, float, type(None))
_SHOWN_ONCE: Final = "shown-once"

Secret: TypeAlias = Annotated[
    str | None,
    Field(description="Shown only once; null in a repeated answer to the same Idempotency-Key."),
    _SHOWN_ONCE,
]
"""A value that only the first answer to a request contains; it is never stored."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotation of a text with fixed values. Unlike ``Literal``, it accepts values that are computed at start-up."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


@dataclass(frozen=True, slots=True)
class From:
    """Annotation of a wire member: the record's attribute that contains the value, or a path such as ``stats.dead``."""

    path: str


class WireModel(BaseModel):
    """A JSON object of the API: immutable, without undeclared members."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_domain(cls, record: Any, /) -> Self:
        """Return the wire form of a record. Records that are members of the record are converted, too."""
        return cls.copying(record)

    @classmethod
    def copying(cls, record: object, **members: Any) -> Self:
        """Return the wire form of a record, which may be an object or a mapping.

        ``members`` take precedence over the record's attributes. A member is read from the attribute with the member's
        name, or with the name that ``From`` gives. Attributes of times and durations end with their unit:
        ``applied_at`` is read from ``applied_us``, ``time`` from ``time_us``, and ``spent_s`` from ``spent_ms``.
        """
        for name, paths in _paths(cls).items():
            if name not in members and (member := _read(record, name, paths)) is not _MISSING:
                members[name] = member
        return cls(**members)

    @model_validator(mode="wrap")
    @classmethod
    def _names_known_members(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate a JSON value, or convert a record.

        The error about an undeclared member lists the declared members. Refused, too, are a text or boolean for a
        number, and any other value for a boolean.
        """
        if not isinstance(value, _JSON_TYPES):
            return value if isinstance(value, cls) else cls.from_domain(value)
        try:
            model = read(value)
            faults = list(_type_faults(value, model)) if isinstance(value, Mapping) else []
        except ValidationError as error:
            names = [field.alias or name for name, field in cls.model_fields.items()]
            faults = [_explained_fault(fault, names) for fault in error.errors(include_url=False)[:MOST_FAULTS]]
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return model


class ChangesModel(WireModel):
    """Changes of a resource (JSON merge patch). Omitted members do not change, and null resets a member to its default.

    ``created`` are the models of new resources, which contain the defaults. ``defaults`` are the defaults of other
    members. Members without a default cannot be null.
    """

    created: ClassVar[tuple[type[BaseModel], ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @model_validator(mode="before")
    @classmethod
    def _resets_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        nulls = [name for name, member in value.items() if member is None and name in cls.model_fields]
        resets = {name: cls._default(name) for name in nulls}
        if lacking := [name for name, default in resets.items() if default is PydanticUndefined]:
            raise ValueError(
                f"{', '.join(lacking)} cannot be null, as there is no default; leave out members that stay unchanged"
            )
        return {**value, **resets}

    @classmethod
    def _default(cls, name: str) -> Any:
        fields = [model.model_fields[name] for model in cls.created if name in model.model_fields]
        default = fields[0].get_default(call_default_factory=True) if fields else PydanticUndefined
        return cls.defaults.get(name, default)


class PartModel(WireModel, Generic[Item]):
    """A part of a list, with the cursor of the next part."""

    next: str | None = Field(None, description="Send as `after` for the next part; null when this is the last.")
    items: list[Item]


class PageModel(WireModel, Generic[Item]):
    """A page of a list to which items are added, with cursors for the next page and for newer items."""

    next: str | None = Field(
        description="Send as `after` for the next page, in the same order; null when the list ends here at present."
    )
    after: str = Field(description="Send later as `after` to get newer items, the oldest first.")
    items: list[Item]

    @classmethod
    def from_domain(cls, page: Any, /, **lists: Sequence[Any]) -> Self:
        """Return the wire form of a page. ``lists`` are further members, each a list of records."""
        members: dict[str, list[Any]] = {}
        for name, records in {"items": page.items, **lists}.items():
            (model,) = get_args(cls.model_fields[name].annotation)
            members[name] = [model.from_domain(record) for record in records]
        return cls(next=page.next, after=page.after, **members)


def _explained_fault(fault: ErrorDetails, names: Sequence[str]) -> InitErrorDetails:
    message, place = fault["msg"], fault["loc"]
    if fault["type"] == "extra_forbidden" and len(place) == 1:
        name = str(place[0])[:LONGEST_NAME]
        listing = f"there are {', '.join(sorted(names))}" if names else "there are none"
        message = f"no such member{did_you_mean(name, names)}; {listing}"
    kind = PydanticCustomError(_OWN_MESSAGE, "{text}", {"text": message})
    return InitErrorDetails(type=kind, loc=place, input=fault["input"])


def _type_faults(value: Mapping[str, Any], model: BaseModel) -> Iterator[InitErrorDetails]:
    """Yield an error for each member of another JSON type than declared, such as ``"5"`` for a number."""
    fields = type(model).model_fields
    for name, member in vars(model).items():
        place = next((alias for alias in _names(name, fields[name]) if alias in value), name)
        sent_member = value.get(place, member)
        if sent_member is None or type(sent_member) is type(member) or not isinstance(member, bool | int | float):
            continue
        if isinstance(member, bool) or isinstance(sent_member, str | bool):
            expected_form = "true or false" if isinstance(member, bool) else "a number"
            kind = PydanticCustomError(_OWN_MESSAGE, "Input should be {wanted}", {"wanted": expected_form})
            yield InitErrorDetails(type=kind, loc=(place,), input=sent_member)


def _names(name: str, field: FieldInfo) -> tuple[str, ...]:
    alias = field.validation_alias
    return tuple(map(str, alias.choices)) if isinstance(alias, AliasChoices) else (field.alias or name,)


@cache
def _paths(model: type[WireModel]) -> Mapping[str, Sequence[Sequence[str]]]:
    """Return, for each member of a model, the attributes of a record from which it may be read, as paths."""
    member_paths = {}
    for name, field in model.model_fields.items():
        stem = name.removesuffix("_s").removesuffix("_at")
        usual = [name, *(_CREATED if name == "created_at" else (f"{stem}_us", f"{stem}_ms"))]
        paths = [annotation.path for annotation in field.metadata if isinstance(annotation, From)] or usual
        member_paths[name] = [path.split(".") for path in paths]
    return member_paths


def _read(record: object, name: str, paths: Sequence[Sequence[str]]) -> Any:
    for path in paths:
        attribute: Any = record
        for part in path:
            attribute = (
                attribute.get(part, _MISSING)
                if isinstance(attribute, (dict, Mapping))
                else getattr(attribute, part, _MISSING)
            )
        if attribute is not _MISSING:
            unit = _UNITS.get(path[-1][-3:])
            if attribute is None or unit is None or path[-1] == name:
                return attribute
            return attribute / unit if name.endswith("_s") else format_time(attribute)
    return _MISSING


def moment(time_us: int | None) -> str | None:
    """Return a time as RFC 3339 text. None remains None."""
    return None if time_us is None else format_time(time_us)


def secrets_of(model: object) -> frozenset[str]:
    """Return the members of a model that are shown only once."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return frozenset()
    return frozenset(name for name, field in model.model_fields.items() if _SHOWN_ONCE in field.metadata)
