"""The data of the demo: a small railway that changes."""
