"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from . import wire as wire
from .asynchronous import AsyncClient as AsyncClient
from .calls import Call as Call, LiveEvent as LiveEvent, Tagged as Tagged, condition as condition, part as part
from .errors import (
    AccessDenied as AccessDenied,
    ApiError as ApiError,
    ClientError as ClientError,
    InvalidRequest as InvalidRequest,
    ResourceChanged as ResourceChanged,
    ResourceConflict as ResourceConflict,
    ResourceMissing as ResourceMissing,
    ServiceFault as ServiceFault,
    ServiceOverloaded as ServiceOverloaded,
    ServiceUnavailable as ServiceUnavailable,
    ServiceUnreachable as ServiceUnreachable,
    UnexpectedAnswer as UnexpectedAnswer,
    WebhookNotVerified as WebhookNotVerified,
)
from .synchronous import Client as Client
from .webhooks import WebhookMessage as WebhookMessage, verify_webhook as verify_webhook
