"""Observability: logs, metrics, spans, the state of the service."""
