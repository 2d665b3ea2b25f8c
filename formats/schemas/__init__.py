"""Schemas: which types a format can hold, and which schema may follow which.

Knows Arrow schemas and no bytes. May use the modules of ``formats`` beside its folders, and no format.
"""
