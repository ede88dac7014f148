"""Webhooks and other sinks in Redis, with the queue of their deliveries and the outcome of each attempt."""
