"""The client of the HTTP API, as programs import it."""

from service.client import (
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
