"""Requests before their operation: bodies, the check of their form, filters, conditions, idempotent creation."""
