"""Webhooks in Redis: who gets what, the queue of deliveries, and how each attempt went."""
