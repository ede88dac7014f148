"""Requests before their operation: bodies, the form that is checked for all, filters, conditions, creation once."""
