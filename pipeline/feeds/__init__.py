"""Inputs besides the API, as streaming sources of Spark. Their rows go to a sink that appends to the event log.

Purpose: a folder of event files, and Kafka topics. Promises: a range between two offsets always yields the same rows in
the same places, so a sink that remembers its place stores every row once. Unreadable input becomes a row with a fault
and its origin, and does not stop the feed. This package does not know what the sink does with a row.
"""

from pipeline.feeds.folder import FolderOptions
from pipeline.feeds.kafka import KafkaOptions, cluster_of
from pipeline.feeds.query import FeedOptions, FeedQuery, start_feed
from pipeline.feeds.rows import FeedRow
