"""The public client of the HTTP API."""

from service.client import *  # noqa: F403 - the front names what programs may import
