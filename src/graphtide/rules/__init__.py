"""Rules over facts and time-stamped events: what holds in the graph while things happen."""
