"""What the package exports; `__init__.py` loads each name where it is first asked for."""

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
)
from .synchronous import Client

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
    "condition",
    "part",
]
