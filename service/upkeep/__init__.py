"""What is done to a service that is stopped: backups, another number of shards."""
