"""Maintenance of a stopped service: backups, and changes of the number of shards."""
