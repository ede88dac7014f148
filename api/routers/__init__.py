"""Handlers, one module per resource: parse the request, call ``service``, render the answer."""
