"""Output of results: stores the rows that the pipeline emits, and delivers results to webhooks and other sinks."""
