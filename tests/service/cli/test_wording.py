"""Messages name commands where these exist."""

import pytest

from service.cli.app import as_commands

GROUPS = {"streams", "patterns", "constraints", "webhooks", "workflows"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("declare it first (POST /v1/streams)", "declare it first (forestall streams add)"),
        ("or change it (PATCH /v1/streams/x1)", "or change it (forestall streams change x1)"),
        ("DELETE /v1/streams/x was refused (409): no", "forestall streams delete x was refused (409): no"),
        ("GET /v1/alerts/live was refused (404): no", "forestall alerts tail was refused (404): no"),
        ("GET /v1/alerts lists them", "GET /v1/alerts lists them"),
        ("follow it (PUT /v1/streams/NAME/workflow)", "follow it (PUT /v1/streams/NAME/workflow)"),
        ("PATCH /v1/patterns/p; then", "forestall patterns change p; then"),
        ("change it (PUT /v1/joins/j)", "change it (PUT /v1/joins/j)"),
        ("change it (PUT /v1/patterns/p)", "change it (forestall patterns change p)"),
        ("unfollow it (DELETE /v1/streams/S/workflow)", "unfollow it (forestall workflows unfollow S)"),
        ("POST /v1/patterns/p/pause was refused (409)", "forestall patterns pause p was refused (409)"),
        ("POST /v1/patterns/p/versions was refused", "POST /v1/patterns/p/versions was refused"),
        ("POST /v1/workflows/w/pause was refused", "POST /v1/workflows/w/pause was refused"),
        ('as DIR is not set; use the log: {"log": true}', "as DIR is not set; leave --path out to use the log"),
        ("PATCH /v1/workflows/w; then", "PATCH /v1/workflows/w; then"),
        ("upload one (POST /v1/constraints), or", "upload one (forestall constraints add), or"),
    ],
)
def test_operations_become_commands(message, expected):
    assert as_commands(message, GROUPS) == expected
