"""Stores: one contract, several implementations. See ``filesink.storage.api``."""
