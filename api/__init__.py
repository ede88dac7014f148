"""The HTTP API of the service: routers, wire models, and the table that maps errors to problem documents.

Purpose: turn requests into calls of ``service``, and results into JSON.

The package guarantees three properties. Every error is a problem document (RFC 9457) with a stable code. A request body
never uses more memory than the configured limit. The effects of a successful answer are stored before it is sent. The
package does not depend on Redis, nor on how patterns are matched.
"""

from api.app import create_app
