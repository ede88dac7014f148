"""The processes of the service, and the code that starts, watches and stops them."""
