"""The contents of the event log, batches of events and control records, and the scripts that run on its server."""
