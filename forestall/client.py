"""The client of the HTTP API, as programs import it."""

from service.client import *  # noqa: F403 - the front names what programs may import
