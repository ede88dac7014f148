"""The way out: rows of the pipeline into their stores, and webhooks to their receivers."""
