"""API keys on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from api.wire import Moment, PartModel, Secret, Time, WireModel, moment
from service import MOST_GRACE_S, ApiKey, KeyDraft, KeyReport, Scope
from streams import parse_time

_SCOPES = "admin: all rights; patterns: change patterns, streams and other resources; ingest: send events; read: read."
_STREAMS = "The only streams that the key may touch; null: all."


class NewKey(WireModel):
    """An API key to create."""

    name: str = Field(description="For people: 1 to 100 printable characters.")
    scopes: list[Scope] = Field(min_length=1, max_length=4, description=_SCOPES)
    streams: list[str] | None = Field(None, min_length=1, max_length=1_000, description=_STREAMS)
    expires_at: Moment | None = Field(None, description="When the key expires (RFC 3339).")

    def to_domain(self) -> KeyDraft:
        expires_us = None if self.expires_at is None else parse_time(self.expires_at)
        return KeyDraft(name=self.name, scopes=self.scopes, streams=self.streams, expires_us=expires_us)


class KeyRotation(WireModel):
    """The rotation of a key's secret. The body may be left out."""

    grace_s: int = Field(0, ge=0, le=MOST_GRACE_S, description="Seconds for which the former secret stays valid.")


class KeyModel(WireModel):
    """An API key, without its secret."""

    id: str
    name: str
    scopes: list[Scope] = Field(description=_SCOPES)
    streams: list[str] | None = Field(description=_STREAMS)
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None = Field(description="To the minute.")
    revoked: bool

    @classmethod
    def of(cls, key: ApiKey, last_used_us: int | None = None, **members: Any) -> Self:
        """Convert an API key. ``members`` are further members of a subclass."""
        return cls.copying(key, last_used_at=moment(last_used_us), revoked=key.revoked_us is not None, **members)

    @classmethod
    def from_domain(cls, report: KeyReport) -> Self:
        return cls.of(report.key, report.last_used_us)


class CreatedKey(KeyModel):
    """An API key with its token, which clients send as 'Authorization: Bearer <token>'.

    The token is shown only once.
    """

    token: Secret


class KeyList(PartModel[KeyModel]):
    """All API keys, the oldest first."""


class CallerModel(WireModel):
    """The API key of a request, and its rights."""

    id: str | None = Field(description="Null while no key is required.")
    name: str | None
    scopes: list[Scope] = Field(description=_SCOPES)
    streams: list[str] | None = Field(description=_STREAMS)
