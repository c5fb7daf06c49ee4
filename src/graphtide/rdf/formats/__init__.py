"""Readers and writers of RDF files and change logs, and the registry of their formats."""
