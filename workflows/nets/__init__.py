"""Models as graphs of gateways and activities, as nets of places and transitions, and the translations between the
forms.
"""
