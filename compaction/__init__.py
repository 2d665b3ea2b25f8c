"""Merging of small files before they are published: what to merge, when, and how."""
