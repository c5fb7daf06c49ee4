"""Test helpers: reference evaluator, oracles, random queries and streams, fuzzing."""
