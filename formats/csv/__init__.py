"""Comma-separated values: dialects, writer and reader."""
