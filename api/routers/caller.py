"""The caller: the API key of a request, and its rights."""

from __future__ import annotations

from fastapi import APIRouter

from api.access.callers import Calling
from api.schemas.keys import CallerModel

router = APIRouter(prefix="/caller", tags=["keys"])


@router.get("", summary="Look up the caller's API key")
def get_caller(caller: Calling) -> CallerModel:
    """The API key of this request and its rights, for clients that offer only what their key may do.

    `id` is null while the service requires no key, and `environment` for the key in `FORESTALL_API_KEY`.
    """
    return CallerModel.from_domain(caller)
