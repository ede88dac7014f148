"""The errors that the client raises.

ClientError
├── ServiceUnreachable    no answer within the patience
├── UnexpectedAnswer      the answer is not from this API
└── ApiError              a problem document; by status:
    ├── InvalidRequest      400, and further 4xx
    ├── AccessDenied        401, 403
    ├── ResourceMissing     404
    ├── ResourceConflict    409
    ├── ResourceChanged     412
    ├── ServiceOverloaded   429
    ├── ServiceUnavailable  503, 504, 507
    └── ServiceFault        500, and further 5xx
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.errors import ForestallError

_REQUEST = "urn:forestall:request:"


class ClientError(ForestallError, code="client"):
    """A call of the API failed."""


class ServiceUnreachable(ClientError, code="service-unreachable", fault="external", is_retryable=True):
    """The service did not answer within the client's patience.

    The detail ``is_listening`` is true if the service accepted the connection.
    """


class UnexpectedAnswer(ClientError, code="unexpected-answer", fault="external"):
    """The answer does not have the form of this API, probably because the address belongs to another server."""


class WebhookNotVerified(ClientError, code="webhook-not-verified", fault="external"):
    """A request to a webhook has no valid signature. The receiver should reject the request."""


class ApiError(ClientError, code="api-error", fault="caller"):
    """The service rejected a call.

    Attributes:
        status: The HTTP status.
        code: The stable code of the problem document, such as ``unknown-stream``.
        detail: Explanation of the problem in a sentence.
        request_id: The ``X-Request-Id`` of the answer, with which the call can be found in the log of the API.
        problem: The whole problem document, or empty if the answer had none.
        retry_after_s: Seconds after which the same call may succeed, or None if the answer had no ``Retry-After``.
    """

    def __init__(
        self, message: str, *, status: int, problem: Mapping[str, Any], request_id: str, retry_after_s: int | None
    ) -> None:
        super().__init__(message, status=status, problem=dict(problem))
        self.status = status
        self.code = str(problem.get("code", type(self).code))
        self.problem = problem
        self.detail = str(problem.get("detail") or problem.get("title") or message)
        self.request_id = request_id or str(problem.get("instance") or "").removeprefix(_REQUEST)
        self.retry_after_s = retry_after_s


class InvalidRequest(ApiError, code="invalid-request"):
    """The request is invalid. ``problem`` may list the faults in its member ``errors``."""


class AccessDenied(ApiError, code="access-denied"):
    """The API key is missing or wrong, lacks a scope, or gives no access to the stream."""


class ResourceMissing(ApiError, code="resource-missing"):
    """The path, or a resource that the request names, does not exist."""


class ResourceConflict(ApiError, code="resource-conflict"):
    """The request conflicts with the current state of the resource."""


class ResourceChanged(ApiError, code="resource-changed"):
    """The resource has changed since it was read."""


class ServiceOverloaded(ApiError, code="service-overloaded", fault="external", is_retryable=True):
    """The service was overloaded until the client's patience for overload was over."""


class ServiceUnavailable(ApiError, code="service-unavailable", fault="external", is_retryable=True):
    """A part of the service did not answer within the client's patience."""


class ServiceFault(ApiError, code="service-fault", fault="internal"):
    """The service failed to process the request."""
