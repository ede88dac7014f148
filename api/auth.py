"""Who may call: the holder of the one API key, as bearer token or in ``X-API-Key``."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Depends
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from api.errors import Unauthorized
from api.services import Served

_BEARER = HTTPBearer(auto_error=False, description="The API key.")
_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The API key.")


def require_key(
    services: Served,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    header: Annotated[str | None, Depends(_HEADER)],
) -> None:
    """Refuse a call without the key, if one is set; takes the same time however much of it is right.

    Raises:
        Unauthorized: The key is missing or wrong.
    """
    expected = services.settings.api_key
    if expected is None:
        return
    given = bearer.credentials if bearer is not None else header
    if given is None:
        raise Unauthorized("send the API key as 'Authorization: Bearer <key>' or as 'X-API-Key: <key>'")
    if not hmac.compare_digest(given.encode(), expected.get_secret_value().encode()):
        raise Unauthorized("the API key is wrong")
