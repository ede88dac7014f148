"""Webhooks in Redis: what each receives, the queue of deliveries, and the outcome of each attempt."""
