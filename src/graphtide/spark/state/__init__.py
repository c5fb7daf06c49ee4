"""Durable state: messages, the log of a partition, and the cache of engines made from it."""
