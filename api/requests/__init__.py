"""Processing that requests share: bodies, checks of their form, filters, preconditions, idempotent creation."""
