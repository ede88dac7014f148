"""Everything about Spark itself: session, Java, machines of a cluster, running queries and their heartbeat."""
