"""Streams of graph events, windows over them, and the queries that read these windows."""
