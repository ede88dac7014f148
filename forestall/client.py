"""The client of the HTTP API, as the public front exports it."""

from service.client import ApiError, AsyncClient, ServiceUnreachable, UnexpectedAnswer

__all__ = ["ApiError", "AsyncClient", "ServiceUnreachable", "UnexpectedAnswer"]
