"""Models as drawn: graphs of gateways and activities, and nets of places and transitions."""
