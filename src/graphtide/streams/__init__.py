"""Windows: streams of graph events, and which of them are looked at when."""
