"""Common processing of requests: bodies, checks of their form, filters, conditions, idempotent creation."""
