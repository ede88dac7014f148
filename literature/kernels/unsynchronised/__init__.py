"""What runs for each arrival of an unsynchronised join."""
