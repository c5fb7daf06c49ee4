"""Tests of programs, here and in pytest, and a Kafka broker of one node."""
