"""Kafka: changes from a topic, deltas to a topic."""
