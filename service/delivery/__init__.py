"""The output of the service: it stores the rows that the pipeline emits, and delivers results to webhooks and sinks."""
