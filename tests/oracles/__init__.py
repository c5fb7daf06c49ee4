"""What the tests compare Graphtide with: slow and plain evaluators, and random input for both."""
