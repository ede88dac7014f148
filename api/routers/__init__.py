"""Request handlers, one module per resource.

A handler parses the request, calls ``service``, and renders the answer.
"""
