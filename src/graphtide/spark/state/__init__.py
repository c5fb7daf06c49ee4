"""The state of partitions between micro-batches, and the messages between stages."""
