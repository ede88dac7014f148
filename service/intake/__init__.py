"""The way into the log: posted events, their schemas and identities, feeds, announcements, and what is sent again."""
