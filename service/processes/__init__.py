"""The processes of the service, and what starts, watches and ends them."""
