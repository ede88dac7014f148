"""The HTTP API of the service: routers, wire models, and the table from errors to problem responses.

Purpose: to turn requests into calls of ``service`` and answers into JSON. Promises: every error is a problem document
(RFC 9457) with a stable code, a body never takes more memory than the limit, and the effects of a successful answer are
safe. Nothing here knows Redis or how patterns are matched.
"""

from api.app import create_app
