"""Direct routes: frequent operations whose usual requests bypass the framework.

For each request, the framework resolves the operation's dependencies. For a small request, this takes a third of the
CPU time.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.responses import Response

from api.access.auth import caller_of
from api.errors import ApiError
from api.requests.form import SMALL, parse_document

_BODY_FIELDS = {"content-type": "application/json", "content-encoding": None}


class DirectRoute(APIRoute):
    """A route for a frequent operation. Its usual requests bypass the framework's resolution of dependencies.

    The operation requires the scope ``read``. Its function takes path parameters, a model as body, and the services.
    """

    async def answer(self, request: Request) -> Response | None:
        """Call the operation for a usual request, and return its answer.

        Return None for an unusual or faulty request, which the framework then processes.
        """
        caller, body, headers = caller_of(request), await request.body(), request.headers
        is_usual = caller.streams is None and caller.may("read") and not request.scope["query_string"]
        if not is_usual or not 0 < len(body) <= SMALL:
            return None
        if any(headers.get(name) != value for name, value in _BODY_FIELDS.items()):
            return None
        assert self.body_field is not None, "it has a model as its body"
        try:
            model: Any = self.body_field.field_info.annotation.model_validate(parse_document(body))  # type: ignore[union-attr]
        except (ApiError, ValidationError):
            return None
        arguments = {self.body_field.name: model, "services": request.state.services}
        response: Response = await self.endpoint(**request.path_params, **arguments)
        return response
