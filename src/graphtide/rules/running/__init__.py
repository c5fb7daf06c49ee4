"""The parts of a running program, and how another program takes their place."""
