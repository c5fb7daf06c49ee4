"""What runs on the driver: `run`, its options, its output and the actions of rules."""
