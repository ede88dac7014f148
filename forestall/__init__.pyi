"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .client import (
    AccessDenied,
    ApiError,
    AsyncClient,
    Client,
    ClientError,
    InvalidRequest,
    LiveEvent,
    ResourceChanged,
    ResourceConflict,
    ResourceMissing,
    ServiceFault,
    ServiceOverloaded,
    ServiceUnavailable,
    ServiceUnreachable,
    Tagged,
    UnexpectedAnswer,
    WebhookMessage,
    WebhookNotVerified,
    verify_webhook,
    wire,
)
from .errors import FrameRefused, ResultsNotKept
from .match_result import MatchResult
from .matching import match
from .queries import sql

__all__ = [
    "AccessDenied",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "FrameRefused",
    "InvalidRequest",
    "LiveEvent",
    "MatchResult",
    "ResourceChanged",
    "ResourceConflict",
    "ResourceMissing",
    "ResultsNotKept",
    "ServiceFault",
    "ServiceOverloaded",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "Tagged",
    "UnexpectedAnswer",
    "WebhookMessage",
    "WebhookNotVerified",
    "match",
    "sql",
    "verify_webhook",
    "wire",
]
