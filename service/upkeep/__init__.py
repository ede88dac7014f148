"""Maintenance of a stopped service: backups, another number of shards."""
