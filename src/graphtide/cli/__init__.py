"""The command line: `graphtide watch`, `explain`, `check`, `demo` and `bench`."""
