"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from . import wire
from .asynchronous import AsyncClient
from .calls import Call, LiveEvent, Tagged, condition, part
from .errors import (
    AccessDenied,
    ApiError,
    ClientError,
    InvalidRequest,
    ResourceChanged,
    ResourceConflict,
    ResourceMissing,
    ServiceFault,
    ServiceOverloaded,
    ServiceUnavailable,
    ServiceUnreachable,
    UnexpectedAnswer,
    WebhookNotVerified,
)
from .synchronous import Client
from .webhooks import WebhookMessage, verify_webhook

__all__ = [
    "AccessDenied",
    "ApiError",
    "AsyncClient",
    "Call",
    "Client",
    "ClientError",
    "InvalidRequest",
    "LiveEvent",
    "ResourceChanged",
    "ResourceConflict",
    "ResourceMissing",
    "ServiceFault",
    "ServiceOverloaded",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "Tagged",
    "UnexpectedAnswer",
    "WebhookMessage",
    "WebhookNotVerified",
    "condition",
    "part",
    "verify_webhook",
    "wire",
]
