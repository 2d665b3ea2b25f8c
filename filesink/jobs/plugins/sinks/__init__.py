"""Sinks other than those of files: for people, for tests, and filesink's own others."""
