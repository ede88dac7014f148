"""Handlers, one module per resource: parse, call ``service``, render."""
