"""Tests that programs declare, run by the command line or by pytest."""
