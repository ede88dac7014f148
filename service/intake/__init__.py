"""Intake into the log: posted events, their schemas and identities, feeds, announcements, and resent dead letters."""
