"""Windows over graph streams: the measurements of paper 5."""
