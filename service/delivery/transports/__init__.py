"""The sinks other than webhooks, which deliver results to a folder, a mailbox or a Kafka topic (ADR 76)."""
