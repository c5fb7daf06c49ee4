"""The page where people watch: what it shows, and its files."""
