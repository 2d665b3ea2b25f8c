"""Stores of objects: multipart uploads, conditional requests, no directories.

Everything but the client of one service, which implements ``api.Objects``.
"""
