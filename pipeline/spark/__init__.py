"""Spark itself: the session, its Java, cluster machines, a running query and its heartbeat."""
