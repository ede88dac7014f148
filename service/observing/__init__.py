"""Observability: logs, metrics, spans, and the state of the service."""
