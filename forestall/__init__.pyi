"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .client import (
    AccessDenied as AccessDenied,
    ApiError as ApiError,
    AsyncClient as AsyncClient,
    Client as Client,
    ClientError as ClientError,
    InvalidRequest as InvalidRequest,
    LiveEvent as LiveEvent,
    ResourceChanged as ResourceChanged,
    ResourceConflict as ResourceConflict,
    ResourceMissing as ResourceMissing,
    ServiceFault as ServiceFault,
    ServiceOverloaded as ServiceOverloaded,
    ServiceUnavailable as ServiceUnavailable,
    ServiceUnreachable as ServiceUnreachable,
    Tagged as Tagged,
    UnexpectedAnswer as UnexpectedAnswer,
    WebhookMessage as WebhookMessage,
    WebhookNotVerified as WebhookNotVerified,
    verify_webhook as verify_webhook,
    wire as wire,
)
from .errors import ForestallError as ForestallError, FrameRefused as FrameRefused, ResultsNotKept as ResultsNotKept
from .files import read as read
from .match_result import MatchResult as MatchResult
from .matching import match as match
from .models import (
    ConformanceResult as ConformanceResult,
    Discovery as Discovery,
    conformance as conformance,
    discover as discover,
    simulate as simulate,
)
from .queries import sql as sql
from .running import RunResult as RunResult, run as run
