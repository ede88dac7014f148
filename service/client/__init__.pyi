"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .asynchronous import AsyncClient
from .calls import Call, LiveEvent, Patience, Tagged, part
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
from .former import REPLAY_SOURCE, ForestallClient, Startable, await_ready
from .synchronous import Client

__all__ = [
    "REPLAY_SOURCE",
    "AccessDenied",
    "ApiError",
    "AsyncClient",
    "Call",
    "Client",
    "ClientError",
    "ForestallClient",
    "InvalidRequest",
    "LiveEvent",
    "Patience",
    "ResourceChanged",
    "ResourceConflict",
    "ResourceMissing",
    "ServiceFault",
    "ServiceOverloaded",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "Startable",
    "Tagged",
    "UnexpectedAnswer",
    "await_ready",
    "part",
]
