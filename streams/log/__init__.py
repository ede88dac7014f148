"""What the event log holds: batches of events and control records; and the scripts that run at its server."""
