"""The web console: pages in which people see, ask and steer a running service.

Purpose: overview, alerts, transactions, process, patterns and webhooks in a browser. Promises: a process of its own;
a client of the public HTTP API through ``forestall.AsyncClient`` alone, with the rights of the API key that a person
logs in with; no page needs the internet. Pages are rendered on the server; small scripts refresh them.
"""

from console.app import create_console as create_console
from console.serving import serve as serve
