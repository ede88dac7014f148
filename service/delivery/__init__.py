"""Output of results: the pipeline's rows are stored, and delivered to webhooks and other sinks."""
