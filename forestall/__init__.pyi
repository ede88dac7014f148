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
from .errors import ForestallError, FrameRefused, ResultsNotKept
from .files import read
from .match_result import MatchResult
from .matching import match
from .models import ConformanceResult, Discovery, conformance, discover, simulate
from .queries import sql
from .running import RunResult, run

__all__ = [
    "AccessDenied",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConformanceResult",
    "Discovery",
    "ForestallError",
    "FrameRefused",
    "InvalidRequest",
    "LiveEvent",
    "MatchResult",
    "ResourceChanged",
    "ResourceConflict",
    "ResourceMissing",
    "ResultsNotKept",
    "RunResult",
    "ServiceFault",
    "ServiceOverloaded",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "Tagged",
    "UnexpectedAnswer",
    "WebhookMessage",
    "WebhookNotVerified",
    "conformance",
    "discover",
    "match",
    "read",
    "run",
    "simulate",
    "sql",
    "verify_webhook",
    "wire",
]
