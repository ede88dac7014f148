"""The web console: pages on which people watch, query and control a running service.

Purpose: overview, alerts, transactions, process, patterns and webhooks in a browser. Promises: a separate process; a
client of the public HTTP API through ``forestall.AsyncClient`` alone, with the rights of the API key that a person logs
in with; no page needs the internet. The server renders the pages; small scripts refresh them.
"""

from console.app import create_console as create_console
from console.serving import serve as serve
