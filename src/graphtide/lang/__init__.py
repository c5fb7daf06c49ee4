"""Query languages: text in, algebra out."""
