"""A log of Delta beside the files of a path. ``deltalake`` translates columns and makes checkpoints.

The commits are our own JSON. Delta's Rust library knows no commit that changes columns and files at once, and
loads the list of all files for each one.
"""
