"""Hosts and parts of hosts that several kinds of operators share."""
