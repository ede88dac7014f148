"""Spark itself: the session, the Java below it, other machines, a running query and its sign of life."""
