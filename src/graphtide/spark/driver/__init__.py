"""Running a program: options, actions, feedback, sink, status."""
