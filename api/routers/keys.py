"""API keys: operations to create, list, look up, rotate and revoke keys, and to look up the caller's key."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from api.access.auth import Calling
from api.locations import creation, give_location
from api.requests.filters import WantedPart
from api.requests.idempotency import IdempotentRoute
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.keys import CallerModel, CreatedKey, KeyList, KeyModel, KeyRotation, NewKey
from api.services import Served

router = APIRouter(prefix="/keys", tags=["keys"], route_class=IdempotentRoute)

_AT_ONCE = KeyRotation()


@router.post("", **creation("Create an API key"))
def create_key(key: NewKey, services: Served, response: Response) -> CreatedKey:
    """Create an API key. Its token is shown only in this answer.

    If the service required no key before, it requires one from now on. Therefore the first key must have the scope
    ``admin``. Every request with a key that is restricted to streams must name a stream.
    """
    api_key, token = services.keys.create(key.to_domain())
    give_location(response, "keys", api_key.id)
    give_tag(response, api_key)
    return CreatedKey.of(api_key, token=token)


@router.get("", summary="List the API keys")
def list_keys(services: Served, part: WantedPart) -> KeyList:
    """List all API keys, the oldest first, including revoked and expired keys."""
    return KeyList(**part.of([KeyModel.from_domain(report) for report in services.keys.all()], "id"))


@router.get("/{key_id}", summary="Look up an API key")
def get_key(key_id: str, services: Served, response: Response) -> KeyModel:
    """Look up an API key, without its secret, of which only a digest is stored."""
    report = services.keys.get(key_id)
    give_tag(response, report.key)
    return KeyModel.from_domain(report)


@router.post("/{key_id}/rotate", summary="Rotate the secret of an API key")
def rotate_key(
    key_id: str, services: Served, response: Response, preconditions: Preconditions, rotation: KeyRotation = _AT_ONCE
) -> CreatedKey:
    """Replace the secret of a key. Its id and rights do not change, and the new token is shown only in this answer.

    The former secret is valid for ``grace_s`` more seconds, so that clients can be changed one by one.
    """
    key, token = services.keys.rotate(key_id, rotation.grace_s, preconditions)
    give_tag(response, key)
    return CreatedKey.of(key, token=token)


@router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT, summary="Revoke an API key")
def revoke_key(key_id: str, services: Served, preconditions: Preconditions) -> None:
    """Revoke an API key permanently.

    The key remains in the list, and other processes of the API refuse it within a second.
    """
    services.keys.revoke(key_id, preconditions)


caller_router = APIRouter(prefix="/caller", tags=["keys"])


@caller_router.get("", summary="Look up the caller's API key")
def get_caller(caller: Calling) -> CallerModel:
    """Look up the API key of this request and its rights, for clients that offer only permitted operations.

    `id` is null while the service requires no key, and `environment` for the key in `FORESTALL_API_KEY`.
    """
    return CallerModel.from_domain(caller)
