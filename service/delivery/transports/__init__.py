"""Sinks other than webhooks: how results reach a folder, a mailbox or a topic (ADR 76)."""
